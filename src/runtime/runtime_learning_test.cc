// Methods of learning that keep more than weights, under the wall clock.
#include <gtest/gtest.h>

#include <filesystem>

#include "execution/small_run.h"
#include "runtime/runtime.h"

namespace pace {
namespace {

TEST(RuntimeLearningTest, EveryMethodStopsAndGoesOn) {
  const std::vector<std::vector<std::string>> methods = {
      {"train.advantage=gae"},
      {"train.advantage=remax"},
      {"train.kl_coef=0.1", "train.kl_reward_coef=0.1", "train.kl_target=0.01"},
      {"train.ess_learning_rate=true", "train.opob=true"}};
  for (const std::vector<std::string>& method : methods) {
    std::vector<std::string> overrides = {"run.num_steps=8", "run.checkpoint_every=3"};
    overrides.insert(overrides.end(), method.begin(), method.end());
    const Settings settings = SmallSettings(overrides);
    const Policy policy = SmallPolicy(settings);
    const std::filesystem::path folder =
        std::filesystem::path(PACE_BINARY_DIR) / "runtime_learning_scratch" / method.front();
    std::filesystem::remove_all(folder);
    struct Counter final : RunObserver {
      int64_t steps = 0;
      void OnStep(int64_t done, const MetricsRow&) override { steps = done; }
    } counter;
    const Result<RunResult> first =
        RunTraining(settings, policy,
                    {.checkpoints = folder.string(), .observer = &counter, .stop = [&counter] {
                       return counter.steps >= 4;
                     }});
    ASSERT_TRUE(first.ok()) << method.front() << ": " << first.status().message();
    const Result<RunResult> rest =
        RunTraining(settings, policy, {.checkpoints = folder.string(), .resume = true});
    ASSERT_TRUE(rest.ok()) << method.front() << ": " << rest.status().message();
    EXPECT_EQ(rest->steps_done, 8) << method.front();
    EXPECT_EQ(rest->rows.size(), 8U - first->rows.size()) << method.front();
  }
}

}  // namespace
}  // namespace pace
