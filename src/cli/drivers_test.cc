// The lab and the runtime run the same method.
#include <gtest/gtest.h>

#include "execution/small_run.h"
#include "lab/lab.h"
#include "runtime/runtime.h"

namespace pace {
namespace {

TEST(DriversTest, SyncGivesTheSameWeightsInTheLabAndInTheRuntime) {
  const Settings settings = SmallSettings({"run.num_steps=20"}, "sync");
  const Policy policy = SmallPolicy(settings);
  const Result<LabResult> lab = RunLab(settings, policy, {});
  ASSERT_TRUE(lab.ok()) << lab.status().message();
  const Result<TrainingResult> runtime = RunTraining(settings, policy, {});
  ASSERT_TRUE(runtime.ok()) << runtime.status().message();
  EXPECT_EQ(runtime->rows.size(), 20U);
  EXPECT_TRUE(SameWeights(lab->weights, runtime->weights));
  EXPECT_FALSE(SameWeights(lab->weights, policy.weights));
}

}  // namespace
}  // namespace pace
