#include "core/staleness.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace pace {
namespace {

TEST(VersionRunsTest, MergesNeighboursOfOneVersion) {
  VersionRuns runs;
  runs.Append(PolicyVersion(1), 3);
  runs.Append(PolicyVersion(1), 2);
  runs.Append(PolicyVersion(4), 1);
  EXPECT_EQ(runs.segments(), (std::vector<Segment>{{PolicyVersion(1), 5}, {PolicyVersion(4), 1}}));
  EXPECT_EQ(NumTokens(runs.segments()), 6);
}

TEST(StalenessTest, GenerationIsTheMeanOverTokens) {
  const std::vector<Segment> segments = {{PolicyVersion(0), 1}, {PolicyVersion(2), 3}};
  EXPECT_DOUBLE_EQ(GenerationStaleness(segments, PolicyVersion(2)), 0.5);
}

TEST(StalenessTest, WaitingSplitsIntoAssemblyAndPool) {
  const std::vector<Segment> fresh = {{PolicyVersion(3), 4}};
  const std::vector<MemberSummary> members = {
      MemberSummary::Of(fresh, PolicyVersion(3), std::nullopt),
      MemberSummary::Of(fresh, PolicyVersion(5), 0.5)};
  const auto group = GroupSummary::Of(GroupId(1), PolicyVersion(5), members, 10);
  EXPECT_DOUBLE_EQ(group.Waiting(PolicyVersion(8)), 4.0);
  EXPECT_DOUBLE_EQ(group.WaitingAssembly(), 1.0);
  EXPECT_DOUBLE_EQ(group.WaitingPool(PolicyVersion(8)), 3.0);
  EXPECT_DOUBLE_EQ(group.prefix_score.value(), 0.5);
  EXPECT_DOUBLE_EQ(group.MaxMemberLag(PolicyVersion(8)), 5.0);
  EXPECT_EQ(group.MaxTokenLag(PolicyVersion(8)), 5);
}

// lag = mean over tokens of (j - v_t) = K_gen + K_wait, whatever the runs.
TEST(StalenessTest, LagIsGenerationPlusWaiting) {
  const CounterRandom random(5, 0);
  for (uint64_t trial = 0; trial < 500; ++trial) {
    std::vector<MemberSummary> members;
    double naive_lag = 0;
    const auto num_members = 1 + random.Bits(trial, 0) % 6;
    const PolicyVersion step(40);
    for (uint64_t m = 0; m < num_members; ++m) {
      std::vector<Segment> segments;
      int64_t version = 0, tokens = 0, lag_sum = 0;
      const auto num_runs = 1 + random.Bits(trial, 10 + m) % 5;
      for (uint64_t r = 0; r < num_runs; ++r) {
        version += static_cast<int64_t>(random.Bits(trial, 100 + m * 10 + r) % 4);
        const auto n = 1 + static_cast<int64_t>(random.Bits(trial, 200 + m * 10 + r) % 300);
        segments.push_back({PolicyVersion(version), n});
        tokens += n;
        lag_sum += n * (step.step() - version);
      }
      naive_lag += static_cast<double>(lag_sum) / static_cast<double>(tokens);
      const auto waited = static_cast<int64_t>(random.Bits(trial, 300 + m) % 5);
      members.push_back(MemberSummary::Of(segments, PolicyVersion(version + waited), std::nullopt));
    }
    const auto group = GroupSummary::Of(GroupId(1), PolicyVersion(39), members, 0);
    EXPECT_NEAR(group.LagAt(step), naive_lag / static_cast<double>(num_members), 1e-12);
    EXPECT_NEAR(group.Waiting(step), group.WaitingAssembly() + group.WaitingPool(step), 1e-12);
  }
}

}  // namespace
}  // namespace pace
