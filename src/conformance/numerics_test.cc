// `pace-conformance numerics` over the reference data, and that it can fail.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "conformance/kinds.h"
#include "core/test_data.h"

namespace pace {
namespace {

constexpr int kNumCases = 346;

Tally Check(const std::filesystem::path& path) {
  Tally tally;
  KindArguments arguments;
  arguments.paths = {path.string()};
  const Status status = CheckNumerics(arguments, tally);
  EXPECT_TRUE(status.ok()) << status.message();
  return tally;
}

// A file of this family with these cases, in the running test's own folder.
std::filesystem::path WriteCases(const std::string& family, const std::string& cases) {
  const std::filesystem::path folder =
      std::filesystem::path(PACE_BINARY_DIR) / "numerics_scratch" /
      testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / (family + ".json");
  std::ofstream(path) << R"({"cases": [)" << cases << "]}";
  return path;
}

// One good token of ratio e^0.5 under a clip of 0.28.
std::string VanillaCase(const std::string& loss, const std::string& gradient) {
  return R"({"name": "one", "inputs": {"old_log_prob": [[-1.5]], "log_prob": [[-1.0]],
             "advantages": [[1.0]], "response_mask": [[1]]},
             "config": {"clip_ratio_low": 0.2, "clip_ratio_high": 0.28, "clip_ratio_c": 10.0},
             "expected": {"pg_clipfrac": 1.0, "ppo_kl": -0.5, "pg_clipfrac_lower": 0.0,
               "by_loss_agg_mode": {"token-mean": {"loss": )" +
         loss + R"(, "grad_log_prob": )" + gradient + "}}}}";
}

TEST(NumericsTest, EveryReferenceCasePasses) {
  const std::filesystem::path folder = SharedData() / "numerics";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << WithoutData(folder, kNumCases);
  int64_t num_passed = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const Tally tally = Check(file.path());
    for (const std::string& failure : tally.failures) ADD_FAILURE() << failure;
    for (const std::string& note : tally.notes) ADD_FAILURE() << note;
    num_passed += tally.num_passed;
  }
  EXPECT_GE(num_passed, kNumCases);
}

TEST(NumericsTest, RightNumbersPass) {
  const Tally tally = Check(WriteCases("policy_loss_vanilla", VanillaCase("-1.28", "[[0.0]]")));
  EXPECT_EQ(tally.num_passed, 1);
}

TEST(NumericsTest, AWrongLossOrGradientFails) {
  const Tally loss = Check(WriteCases("policy_loss_vanilla", VanillaCase("-1.2801", "[[0.0]]")));
  ASSERT_EQ(loss.num_failed, 1);
  EXPECT_NE(loss.failures[0].find("one: loss: ours -1.28, expected -1.2801"), std::string::npos)
      << loss.failures[0];
  const Tally gradient =
      Check(WriteCases("policy_loss_vanilla", VanillaCase("-1.28", "[[0.0001]]")));
  EXPECT_EQ(gradient.num_failed, 1);
  const Tally shape = Check(WriteCases("policy_loss_vanilla", VanillaCase("-1.28", "[[0, 0]]")));
  EXPECT_EQ(shape.num_failed, 1);
}

TEST(NumericsTest, AMissingErrorFails) {
  const Tally tally = Check(WriteCases(
      "advantages",
      R"({"name": "one", "inputs": {"token_level_rewards": [[1.0]], "response_mask": [[1]],
          "index": [0]}, "config": {"algorithm": "grpo"}, "expected": {"error": "ValueError"}})"));
  EXPECT_EQ(tally.num_failed, 1);
}

TEST(NumericsTest, WhatWeDoNotHaveIsSkippedWithAReason) {
  const Tally tally =
      Check(WriteCases("policy_loss_variants",
                       R"({"name": "one", "inputs": {"old_log_prob": [[-1]], "log_prob": [[-1]],
          "advantages": [[1]], "response_mask": [[1]]}, "config": {"algorithm": "new"},
          "expected": {"loss": 1}})"));
  EXPECT_EQ(tally.num_skipped, 1);
  ASSERT_EQ(tally.notes.size(), 1);
  EXPECT_NE(tally.notes[0].find("we have no loss `new`"), std::string::npos);
}

TEST(NumericsTest, BrokenCasesFailWithoutCrashing) {
  for (const char* family :
       {"adamw", "advantages", "decoupled_ppo", "kl_penalties", "logprob_entropy", "m2po",
        "policy_loss_vanilla", "policy_loss_variants", "reward_shaping", "rollout_correction",
        "topr", "vcpo"}) {
    for (const char* broken :
         {"1", "{}", R"({"config": {"part": "opob", "algorithm": "grpo", "rule": "areal"}})",
          R"({"inputs": {"response_mask": [[1, 0], [1]], "log_prob": [[1]]},
              "config": {"part": "ess_lr", "algorithm": "gspo", "rule": "paper"}})",
          R"({"inputs": {"response_mask": [], "params": [], "grads": 3, "hidden": []},
              "config": {"part": "ppo", "algorithm": "bypass_mode", "betas": [0, 0],
                         "kl_penalty": "k3"}})"}) {
      const Tally tally = Check(WriteCases(family, broken));
      EXPECT_EQ(tally.num_passed, 0) << family << " " << broken;
    }
  }
}

TEST(NumericsTest, AFileOfNoFamilyIsAnError) {
  KindArguments arguments;
  arguments.paths = {"other.json"};
  Tally tally;
  EXPECT_FALSE(CheckNumerics(arguments, tally).ok());
}

}  // namespace
}  // namespace pace
