// The supply policies, those of other systems against what their papers and code say.
#include "control/supply_policies.h"

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

std::unique_ptr<SupplyPolicy> Make(SupplyKind kind, int64_t bound) {
  SupplyOptions options;
  options.policy = kind;
  options.bound = bound;
  return MakeSupplyPolicy(options, 12);
}

TEST(QuotaSupplyTest, AllowsWhatTheNextStepsConsume) {
  const auto supply = Make(SupplyKind::kQuota, 2);
  SupplyView view;
  EXPECT_EQ(supply->NumToStart(view), 36);
  view.num_running = 20;
  view.num_pooled = 10;
  view.num_selected = 6;
  EXPECT_EQ(supply->NumToStart(view), 0);
  // A trained step opens the quota only once its weights are out.
  view.num_pooled = 4;
  view.num_selected = 0;
  view.num_trained = 12;
  view.trainer = PolicyVersion(1);
  EXPECT_EQ(supply->NumToStart(view), 0);
  view.published = PolicyVersion(1);
  EXPECT_EQ(supply->NumToStart(view), 12);
  // What was rejected or lost is not counted: it frees its place.
  view.num_rejected = 100;
  view.num_lost = 100;
  EXPECT_EQ(supply->NumToStart(view), 12);
  EXPECT_FALSE(supply->MayAbandon());
}

TEST(VersionWindowSupplyTest, TheOldestGroupHoldsTheWindow) {
  const auto supply = Make(SupplyKind::kVersionWindow, 2);
  SupplyView view;
  view.published = PolicyVersion(5);
  view.oldest_promised = PolicyVersion(5);
  view.num_started = 60;
  view.num_trained = 60;
  EXPECT_EQ(supply->NumToStart(view), 36);
  view.oldest_dispatch = PolicyVersion(3);
  EXPECT_EQ(supply->NumToStart(view), 12);
  view.oldest_dispatch = PolicyVersion(2);
  EXPECT_EQ(supply->NumToStart(view), 0);
  view.num_lost = 3;
  EXPECT_EQ(supply->NumToStart(view), 3);
}

TEST(OverSamplingSupplyTest, BeginsNothingWhileABatchIsTrainedOn) {
  SupplyOptions options;
  options.policy = SupplyKind::kOverSampling;
  options.over_sampling = 1.6;
  const auto supply = MakeSupplyPolicy(options, 12);
  SupplyView view;
  EXPECT_EQ(supply->NumToStart(view), 20);  // 19.2, rounded up
  view.training = true;
  EXPECT_EQ(supply->NumToStart(view), 0);
  view.training = false;
  view.num_running = 7;
  view.num_pooled = 1;
  EXPECT_EQ(supply->NumToStart(view), 12);
}

TEST(CancellingSupplyTest, StopsWhatIsTooOldToBeAdmitted) {
  const auto supply = Make(SupplyKind::kCancelling, 3);
  ASSERT_TRUE(supply->MayAbandon());
  SupplyView view;
  view.trainer = PolicyVersion(7);
  EXPECT_EQ(supply->ShouldAbandon({.dispatched = PolicyVersion(4)}, view), Abandon::kNo);
  EXPECT_EQ(supply->ShouldAbandon({.dispatched = PolicyVersion(3)}, view), Abandon::kDrop);
  EXPECT_EQ(supply->MaxOutstanding(), 108);
}

}  // namespace
}  // namespace pace
