// Estimators that compare the members of a group.
#include <gtest/gtest.h>

#include <cmath>

#include "train/advantage/rewarded_sequences.h"

namespace pace {
namespace {

// Two groups: {3, 1} of lengths 1 and 3, and {5} alone.
const RewardedSequences kTwoGroups = {
    .masks = {{1}, {1, 1, 1}, {1}}, .rewards = {3, 1, 5}, .groups = {7, 7, 2}};

TEST(GrpoTest, RewardsAreStandardisedWithinTheirGroup) {
  const double unit = 1 / std::sqrt(2);  // unbiased deviation of {3, 1} is sqrt 2
  ExpectNear(kTwoGroups.Of("grpo"), {unit, -unit, -unit, -unit, 5});
}

TEST(GrpoTest, DrGrpoOnlyCentres) {
  ExpectNear(kTwoGroups.Of("dr_grpo"), {1, -1, -1, -1, 5});
  ExpectNear(kTwoGroups.Of("grpo", {{"standardize", "false"}}), {1, -1, -1, -1, 5});
}

TEST(RlooTest, EachMemberIsComparedWithTheOthers) {
  ExpectNear(kTwoGroups.Of("rloo"), {2, -2, -2, -2, 5});
  ExpectNear(kTwoGroups.Of("rloo", {{"single", "zero"}}), {2, -2, -2, -2, 0});
}

TEST(OpoTest, TheBaselineWeighsMembersByTheirLength) {
  // (1 * 3 + 3 * 1) / 4 = 1.5
  ExpectNear(kTwoGroups.Of("opo"), {1.5, -0.5, -0.5, -0.5, 5});
}

TEST(GpgTest, SequencesWithoutARewardScaleUpTheOthers) {
  const RewardedSequences sequences = {
      .masks = {{1}, {1}, {1}, {1}}, .rewards = {1, 0, 0, 0}, .groups = {1, 1, 2, 2}};
  ExpectNear(sequences.Of("gpg"), {2, -2, 0, 0});
  ExpectNear(sequences.Of("gpg", {{"normalizer", "2"}}), {1, -1, 0, 0});
}

TEST(PassAtKTest, OnlyTheBestLearnsFromItsLead) {
  const RewardedSequences sequences = {
      .masks = {{1}, {1}, {1}}, .rewards = {1, 4, 3}, .groups = {1, 1, 1}};
  ExpectNear(sequences.Of("pass_at_k", {{"standardize", "false"}}), {0, 1, 0});
}

TEST(PassAtKTest, AGroupOfOneIsAnError) {
  EXPECT_FALSE(kTwoGroups.Estimate("pass_at_k").ok());
}

}  // namespace
}  // namespace pace
