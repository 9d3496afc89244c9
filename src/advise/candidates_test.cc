#include "advise/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pace {
namespace {

const Candidate& Named(std::string_view title) {
  return *std::find_if(Candidates().begin(), Candidates().end(),
                       [&](const Candidate& candidate) { return candidate.title == title; });
}

TEST(CandidatesTest, TheReferencesAreInTheTable) {
  for (const std::string_view title : {kOnPolicyCandidate, kUnfilteredCandidate}) {
    EXPECT_EQ(Named(title).title, title);
  }
}

TEST(CandidatesTest, EveryCandidateAppliesToEveryLayout) {
  for (const char* preset : {"math-4b", "moe-30b", "retool-4b", "small", "tiny"}) {
    const auto settings = LoadSettings(preset, {});
    ASSERT_TRUE(settings.ok());
    for (const Candidate& candidate : Candidates()) {
      const auto applied = ApplyCandidate(*settings, candidate);
      ASSERT_TRUE(applied.ok()) << applied.status().message();
      EXPECT_EQ(applied->batch.num_groups, settings->batch.num_groups);
      EXPECT_EQ(applied->cluster.rollout_gpus, settings->cluster.rollout_gpus);
      EXPECT_EQ(applied->cluster.layout, settings->cluster.layout);
    }
  }
}

TEST(CandidatesTest, AnotherControllerOfTheFileDoesNotStay) {
  const auto settings =
      LoadSettings("math-4b", {"supply.policy=quota", "admission.policy=stale_k"});
  ASSERT_TRUE(settings.ok());
  const auto applied = ApplyCandidate(*settings, Named("PACE"));
  ASSERT_TRUE(applied.ok());
  EXPECT_EQ(applied->supply.policy, SupplyKind::kThreshold);
  EXPECT_EQ(applied->admission.policy, AdmissionKind::kPace);
}

TEST(CandidatesTest, TheOverridesGiveTheCandidatesSettings) {
  const std::vector<std::string> given = {"supply.policy=quota", "admission.policy=stale_k"};
  const auto settings = LoadSettings("retool-4b", given);
  ASSERT_TRUE(settings.ok());
  for (const Candidate& candidate : Candidates()) {
    const auto applied = ApplyCandidate(*settings, candidate);
    ASSERT_TRUE(applied.ok());
    std::vector<std::string> overrides = given;
    for (const std::string& assignment : OverridesBetween(*settings, *applied)) {
      overrides.push_back(assignment);
    }
    const auto loaded = LoadSettings("retool-4b", overrides);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_TRUE(OverridesBetween(*loaded, *applied).empty()) << candidate.title;
  }
}

TEST(CandidatesTest, SettingsThatAreTheCandidatesNeedNoOverride) {
  const auto settings = LoadSettings("math-4b", {});
  ASSERT_TRUE(settings.ok());
  const auto applied = ApplyCandidate(*settings, Named("PACE"));
  ASSERT_TRUE(applied.ok());
  EXPECT_TRUE(OverridesBetween(*settings, *applied).empty());
}

}  // namespace
}  // namespace pace
