#include "execution/learner_options.h"

#include <gtest/gtest.h>

#include "execution/small_run.h"

namespace pace {
namespace {

std::string ErrorOf(const std::string& setting, const std::string& method, bool lab) {
  return CheckPrefixScores(SmallSettings({setting}, method), lab).message();
}

TEST(LearnerOptionsTest, AFilterByPrefixScoresNeedsThem) {
  EXPECT_EQ(ErrorOf("engine.sync=rebuild", "pace", true), "");
  EXPECT_EQ(ErrorOf("engine.sync=keep", "pace", false).find("engine.sync = keep: "), 0U);
  EXPECT_EQ(ErrorOf("engine.sync=drain", "fair", false).find("engine.sync = drain: "), 0U);
  EXPECT_EQ(ErrorOf("cluster.kv_at_sync=keep", "pace", true).find("cluster.kv_at_sync = keep: "),
            0U);
  EXPECT_EQ(ErrorOf("cluster.kv_at_sync=keep", "pace", false), "");
  for (const char* method : {"async", "raw", "waiting", "stale-2"}) {
    EXPECT_EQ(ErrorOf("engine.sync=keep", method, false), "") << method;
  }
}

TEST(LearnerOptionsTest, AnotherLossLeavesThePresetsSettings) {
  EXPECT_TRUE(TrainerOptionsOf(SmallSettings({"train.loss=cispo"})).ok());
}

}  // namespace
}  // namespace pace
