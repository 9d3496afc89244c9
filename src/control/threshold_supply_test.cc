#include "control/threshold_supply.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(ThresholdSupplyTest, CountsEveryCreditThatIsOut) {
  SupplyOptions options;
  options.threshold = 8;
  const auto supply = MakeSupplyPolicy(options, 12);
  EXPECT_EQ(supply->MaxOutstanding(), 108);
  SupplyView view;
  EXPECT_EQ(supply->NumToStart(view), 108);
  view.num_running = 50;
  view.num_pooled = 20;
  view.num_selected = 12;
  view.num_awaiting_sync = 24;
  EXPECT_EQ(supply->NumToStart(view), 2);
}

TEST(ThresholdSupplyTest, ZeroAllowsOneBatchPerSync) {
  SupplyOptions options;
  options.threshold = 0;
  options.sync_interval = 4;
  EXPECT_EQ(MakeSupplyPolicy(options, 24)->MaxOutstanding(), 96);
}

TEST(ThresholdSupplyTest, FractionsOfABatchRoundDown) {
  SupplyOptions options;
  options.threshold = 0.5;
  EXPECT_EQ(MakeSupplyPolicy(options, 3)->MaxOutstanding(), 4);
  options.threshold = 0.13;  // 1.13 * 100 rounds to just below 113
  EXPECT_EQ(MakeSupplyPolicy(options, 100)->MaxOutstanding(), 113);
}

}  // namespace
}  // namespace pace
