// The lab and the runtime run the same method.
#include <gtest/gtest.h>

#include "execution/small_run.h"
#include "lab/lab.h"
#include "runtime/runtime.h"

namespace pace {
namespace {

TEST(DriversTest, SyncGivesTheSameWeightsInTheLabAndInTheRuntime) {
  for (const char* method : {"train.advantage=grpo", "train.advantage=gae", "train.advantage=remax",
                             "train.kl_coef=0.1", "train.opob=true"}) {
    const Settings settings = SmallSettings({"run.num_steps=20", method}, "sync");
    const Policy policy = SmallPolicy(settings);
    const Result<RunResult> lab = RunLab(settings, policy, {});
    ASSERT_TRUE(lab.ok()) << lab.status().message();
    const Result<RunResult> runtime = RunTraining(settings, policy, {});
    ASSERT_TRUE(runtime.ok()) << runtime.status().message();
    EXPECT_EQ(runtime->rows.size(), 20U);
    EXPECT_TRUE(SameWeights(lab->weights, runtime->weights)) << method;
    EXPECT_FALSE(SameWeights(lab->weights, policy.weights)) << method;
  }
}

}  // namespace
}  // namespace pace
