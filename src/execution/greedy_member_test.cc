// The greedy response of a group, from its request to the batch it is not part of.
#include <gtest/gtest.h>

#include "execution/prompt_source.h"
#include "execution/small_run.h"
#include "execution/trajectory.h"

namespace pace {
namespace {

Trajectory Finished(size_t num_tokens, double reward) {
  Trajectory trajectory{.reward = reward};
  trajectory.response.tokens.resize(num_tokens);
  return trajectory;
}

GroupTrajectories Group() {
  GroupTrajectories group;
  group.prompt_tokens = {1};
  group.members = {Finished(2, 1), Finished(4, 0), Finished(30, 0.25)};
  group.greedy_last = true;
  return group;
}

TEST(GreedyMemberTest, TheOthersAreTrainedOnAndComparedWithIt) {
  std::vector<TrainSequence> sequences;
  Group().AppendTo(sequences);
  ASSERT_EQ(sequences.size(), 2U);
  EXPECT_EQ(sequences[0].reward, 1);
  for (const TrainSequence& sequence : sequences) EXPECT_EQ(sequence.baseline, 0.25);
  GroupTrajectories without = Group();
  without.greedy_last = false;
  without.AppendTo(sequences);
  ASSERT_EQ(sequences.size(), 5U);
  EXPECT_FALSE(sequences[2].baseline.has_value());
}

TEST(GreedyMemberTest, WhatIsReportedIsWhatIsTrainedOn) {
  const PayloadStats stats = Group().Stats();
  EXPECT_EQ(stats.length, 3);
  EXPECT_EQ(stats.reward, 0.5);
  EXPECT_EQ(Group().num_tokens(), 36);
  EXPECT_EQ(Group().num_greedy_tokens(), 30);
}

TEST(GreedyMemberTest, AGroupTeachesWhereOnlyTheGreedyResponseDiffers) {
  GroupTrajectories group = Group();
  group.members[1] = Finished(4, 1);
  EXPECT_FALSE(group.uniform());
  group.members[2] = Finished(30, 1);
  EXPECT_TRUE(group.uniform());
}

TEST(GreedyMemberTest, ARequestAsksForOneMoreAndGreedily) {
  const auto request = [](const std::vector<std::string>& overrides) {
    const Settings settings = SmallSettings(overrides);
    const Policy policy = SmallPolicy(settings);
    const Result<PromptSource> prompt_source = PromptSource::Create(settings, policy);
    EXPECT_TRUE(prompt_source.ok()) << prompt_source.status().message();
    return *prompt_source->RequestFor(GroupId(0), PromptIndex(0));
  };
  EXPECT_EQ(request({}).num_responses, 4);
  EXPECT_FALSE(request({}).greedy_member.has_value());
  const GroupRequest remax = request({"train.advantage=remax"});
  EXPECT_EQ(remax.num_responses, 5);
  EXPECT_EQ(remax.greedy_member, 4);
  EXPECT_TRUE(remax.SamplingOf(4).greedy());
  EXPECT_FALSE(remax.SamplingOf(3).greedy());
}

}  // namespace
}  // namespace pace
