// Methods of learning that keep more than weights, in whole runs: value heads,
// greedy baselines, distances from the initial policy, VCPO.
#include <gtest/gtest.h>

#include <filesystem>

#include "execution/small_run.h"
#include "lab/lab.h"

namespace pace {
namespace {

struct Method {
  std::string name;
  std::vector<std::string> overrides;
  std::string metric;  // that only this method has
};

const Method kMethods[] = {
    {"gae", {"train.advantage=gae", "batch.num_updates=2"}, "train/explained_variance"},
    {"remax", {"train.advantage=remax"}, "train/greedy_reward"},
    {"kl in the loss", {"train.kl_coef=0.1"}, "train/kl_initial"},
    {"kl in the reward, steered",
     {"train.kl_reward_coef=0.05", "train.kl_target=0.01", "train.kl_horizon=20"},
     "train/kl_reward_coef"},
    {"vcpo",
     {"train.loss=reinforce", "train.loss_settings=", "train.ess_learning_rate=true",
      "train.opob=true", "train.opob_settings=max_weight=8"},
     "train/lr_scale"},
};

Settings SettingsOf(const Method& method, std::vector<std::string> overrides = {},
                    const std::string& admission = "effective") {
  overrides.insert(overrides.end(), method.overrides.begin(), method.overrides.end());
  return SmallSettings(overrides, admission);
}

RunResult LearnOk(const Settings& settings, const RunSetup& options = {}) {
  const Policy policy = SmallPolicy(settings);
  Result<RunResult> result = RunLab(settings, policy, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result).value() : RunResult{};
}

std::string LearningFolder(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(PACE_BINARY_DIR) / "lab_learning_scratch" / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

TEST(LabLearningTest, EveryMethodLearnsAndSaysSo) {
  const RunResult plain = LearnOk(SmallSettings());
  for (const Method& method : kMethods) {
    const RunResult result = LearnOk(SettingsOf(method));
    ASSERT_EQ(result.rows.size(), 6U) << method.name;
    EXPECT_FALSE(SameWeights(result.weights, plain.weights)) << method.name;
    for (const MetricsRow& row : result.rows) {
      EXPECT_TRUE(Find(row, method.metric).has_value()) << method.name;
      EXPECT_EQ(Find(row, "train/skipped_updates"), 0) << method.name;
    }
  }
}

TEST(LabLearningTest, ARunKilledAnywhereAndResumedIsTheSameRun) {
  for (const Method& method : kMethods) {
    const Settings settings =
        SettingsOf(method, {"run.checkpoint_every=1", "checkpoint.keep=0", "cluster.rollout_gpus=2",
                            "cluster.sync_overhead_s=0.013"});
    const std::string folder = LearningFolder(method.name);
    const RunResult whole = LearnOk(settings, {.checkpoints = folder});
    ASSERT_EQ(whole.rows.size(), 6U) << method.name;
    for (int last = 5; last >= 1; --last) {
      for (int later = last + 1; later <= 6; ++later) {
        std::filesystem::remove_all(folder + "/step-00000" + std::to_string(later));
      }
      const RunResult rest = LearnOk(settings, {.checkpoints = folder, .resume = true});
      EXPECT_TRUE(SameWeights(whole.weights, rest.weights)) << method.name << " " << last;
      const std::vector<MetricsRow> expected(whole.rows.begin() + last, whole.rows.end());
      EXPECT_EQ(rest.rows, expected) << method.name << " " << last;
    }
  }
}

TEST(LabLearningTest, TheDistanceIsFromThePolicyTheRunBeganWithAlsoWhenResumed) {
  const Settings settings = SettingsOf(kMethods[2], {"run.checkpoint_every=2"}, "sync");
  const std::string folder = LearningFolder("distance");
  const RunResult whole = LearnOk(settings, {.checkpoints = folder});
  EXPECT_EQ(Find(whole.rows.front(), "train/kl_initial"), 0);
  for (size_t i = 1; i < whole.rows.size(); ++i) {
    EXPECT_GT(Find(whole.rows[i], "train/kl_initial"), 0) << i;
  }
  // Another model in its place is noticed.
  Result<Policy> other = NewCharacterPolicy(settings.model, 6);
  ASSERT_TRUE(other.ok());
  const Result<RunResult> rest = RunLab(settings, *other, {.checkpoints = folder, .resume = true});
  ASSERT_FALSE(rest.ok());
  EXPECT_NE(rest.status().message().find("is not the model that the run began with"),
            std::string::npos)
      << rest.status().message();
}

TEST(LabLearningTest, GreedyResponsesAreGeneratedButNotTrainedOn) {
  const RunResult remax = LearnOk(SettingsOf(kMethods[1], {}, "sync"));
  const RunResult plain = LearnOk(SmallSettings({}, "sync"));
  EXPECT_EQ(Find(plain.rows.back(), "cost/tokens_never_trained"), 0);
  const double greedy = Find(remax.rows.back(), "cost/tokens_never_trained").value_or(0);
  const double all = Find(remax.rows.back(), "cost/tokens_generated").value_or(0);
  EXPECT_GT(greedy, 0);
  EXPECT_LT(greedy, all / 3);  // one response of five
}

TEST(LabLearningTest, SettingsThatContradictEachOtherAreRefusedInOneLine) {
  const auto error = [](const std::vector<std::string>& overrides) {
    const Result<Settings> settings = LoadSettings("tiny", overrides);
    EXPECT_FALSE(settings.ok());
    return settings.ok() ? std::string() : settings.status().message();
  };
  EXPECT_NE(error({"train.opob=true", "train.advantage=gae"}).find("train.opob = true"),
            std::string::npos);
  EXPECT_NE(error({"train.kl_estimator=k4"}).find("train.kl_estimator = k4"), std::string::npos);
  EXPECT_NE(error({"train.kl_reward_estimator=k3+"}).find("a reward has none"), std::string::npos);
  EXPECT_NE(error({"train.ess_learning_rate=true", "train.ess_settings=rule=cubic"})
                .find("train.ess_learning_rate.rule = cubic"),
            std::string::npos);
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"train.kl_target=0.1"}, {"train.opob_settings=scope=minibatch"}}) {
    EXPECT_FALSE(LoadSettings("tiny", overrides).ok()) << overrides.front();
  }
}

}  // namespace
}  // namespace pace
