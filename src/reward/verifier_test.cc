#include "reward/verifier.h"

#include <gtest/gtest.h>

#include <string>

namespace pace {
namespace {

TEST(VerifierTest, ModesHaveNames) {
  for (const char* name :
       {"dapo", "dapo-strict", "dapo-int", "math", "equiv", "gsm8k", "exact", "retool"}) {
    const Result<VerifierMode> mode = VerifierModeFromName(name);
    ASSERT_TRUE(mode.ok()) << name;
    EXPECT_EQ(Name(*mode), name);
  }
}

TEST(VerifierTest, AnUnknownModeIsNamedWithTheKnownOnes) {
  const Result<VerifierMode> mode = VerifierModeFromName("dapo_int\n");
  ASSERT_FALSE(mode.ok());
  EXPECT_EQ(mode.status().message(),
            "mode = dapo_int?: must be dapo, dapo-strict, dapo-int, math, equiv, gsm8k, exact or "
            "retool");
}

TEST(VerifierTest, EveryModeFindsAPlainAnswerAndRefusesAWrongOne) {
  const std::string response = "#### 34\nAnswer: 34";
  for (const VerifierMode mode : {VerifierMode::kDapo, VerifierMode::kDapoInteger,
                                  VerifierMode::kEquivalence, VerifierMode::kGsm8k}) {
    EXPECT_TRUE(Verify(mode, response, "34").correct) << Name(mode);
    EXPECT_FALSE(Verify(mode, response, "35").correct) << Name(mode);
  }
  for (const VerifierMode mode : {VerifierMode::kDapoStrict, VerifierMode::kMath,
                                  VerifierMode::kEquivalence, VerifierMode::kRetool}) {
    EXPECT_TRUE(Verify(mode, "\\boxed{34}", "34").correct) << Name(mode);
    EXPECT_FALSE(Verify(mode, "\\boxed{34}", "35").correct) << Name(mode);
  }
}

TEST(ExactTest, IgnoresSpaceAroundAlone) {
  EXPECT_EQ(Verify(VerifierMode::kExact, " 34\n", "34 ").score, 1);
  EXPECT_EQ(Verify(VerifierMode::kExact, "3 4", "34").score, 0);
  EXPECT_EQ(Verify(VerifierMode::kExact, " a b ", "").extracted, "a b");
}

TEST(RetoolTest, WrongAnswersCostLessWithEveryTurnUpToTheTenth) {
  const auto score = [](int64_t num_turns) {
    return Verify(VerifierMode::kRetool, "\\boxed{35}", "34", num_turns).score;
  };
  EXPECT_EQ(score(2), -1.0);
  EXPECT_EQ(score(3), -0.95);
  EXPECT_EQ(score(4), -0.9);
  EXPECT_EQ(score(8), -0.7);
  EXPECT_EQ(score(10), -0.6);
  EXPECT_EQ(score(17), -0.6);
  EXPECT_EQ(score(0), -1.1);
}

TEST(RetoolTest, ARightAnswerIsWorthOneAtAnyTurn) {
  EXPECT_EQ(Verify(VerifierMode::kRetool, "\\boxed{34}", "34", 2).score, 1);
  EXPECT_EQ(Verify(VerifierMode::kRetool, "\\boxed{34}", "34", 12).score, 1);
}

TEST(RetoolTest, NoBoxExtractsTheEmptyText) {
  const Verification seen = Verify(VerifierMode::kRetool, "no box", "34");
  EXPECT_EQ(seen.extracted, "");
  EXPECT_EQ(seen.score, -1);
}

TEST(OverlongTest, FallsLinearlyOverTheBufferAndBeyond) {
  const OverlongOptions options;
  EXPECT_EQ(OverlongPenalty(0, options), 0);
  EXPECT_EQ(OverlongPenalty(4096, options), 0);
  EXPECT_EQ(OverlongPenalty(4097, options), -1.0 / 4096);
  EXPECT_EQ(OverlongPenalty(6144, options), -0.5);
  EXPECT_EQ(OverlongPenalty(8192, options), -1);
  EXPECT_EQ(OverlongPenalty(9000, options), -1.197265625);
  EXPECT_EQ(OverlongPenalty(600, {.max_length = 512, .buffer_length = 128, .factor = 0.5}),
            -0.84375);
}

TEST(OverlongTest, OptionsSayWhatIsWrong) {
  EXPECT_TRUE(OverlongOptions().Validate().ok());
  EXPECT_EQ((OverlongOptions{.max_length = 10, .buffer_length = 11}).Validate().message(),
            "buffer_length = 11: must be in [1, max_length = 10]");
  EXPECT_FALSE((OverlongOptions{.max_length = 0}).Validate().ok());
  EXPECT_FALSE((OverlongOptions{.factor = -1}).Validate().ok());
}

}  // namespace
}  // namespace pace
