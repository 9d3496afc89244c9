#include "execution/training_run.h"

#include <gtest/gtest.h>

#include "core/clock.h"
#include "execution/prompt_source.h"
#include "execution/small_run.h"
#include "execution/trajectory.h"

namespace pace {
namespace {

class StoppedClock final : public Clock {
 public:
  Seconds Now() const override { return Seconds(0); }
};

const RunSetup kSetup;

std::unique_ptr<TrainingRun> MakeRun(const Settings& settings, const Policy& policy,
                                     const Clock& clock) {
  Result<std::unique_ptr<TrainingRun>> run = TrainingRun::Create(settings, policy, clock, kSetup);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return std::move(run).value();
}

TEST(TrainingRunTest, CancelledTokensWereGeneratedAndAreNeverTrained) {
  const Settings settings = SmallSettings();
  const Policy policy = SmallPolicy(settings);
  const StoppedClock clock;
  const auto run = MakeRun(settings, policy, clock);
  PartialResponse unfinished;
  unfinished.tokens = {{.id = 1}, {.id = 2}, {.id = 3, .is_tool = true}};
  run->CountCancelled({unfinished, {}});
  EXPECT_EQ(run->journal().totals().num_tokens_generated, 2);
  EXPECT_EQ(run->journal().totals().num_tokens_never_trained, 2);
}

TEST(TrainingRunTest, TheRecordedLogProbsAreOfTheDistributionThatIsAskedFor) {
  GroupTrajectories group;
  group.prompt_tokens = {1};
  Trajectory trajectory;
  trajectory.response.tokens = {{.id = 2, .logprob = -1.5F, .sampled_logprob = -0.5F}};
  group.members = {trajectory};
  std::vector<TrainSequence> sequences;
  group.AppendTo(sequences);
  group.AppendTo(sequences, RolloutLogprobs::kSampled);
  EXPECT_EQ(sequences[0].rollout_logprobs, std::vector<float>{-1.5F});
  EXPECT_EQ(sequences[1].rollout_logprobs, std::vector<float>{-0.5F});
}

TEST(TrainingRunTest, KeptResponsesContinueInTheNextGroupOfTheirPrompt) {
  const Settings settings = SmallSettings();
  const Policy policy = SmallPolicy(settings);
  const StoppedClock clock;
  const auto run = MakeRun(settings, policy, clock);
  const auto start = [&](int64_t group, int64_t version) {
    return *run->Start({GroupId(group), WorkerId(0), PromptIndex(7), 1}, PolicyVersion(version));
  };
  EXPECT_TRUE(start(1, 3).resumed.empty());
  PartialResponse begun;
  begun.tokens = {{.id = 1, .version = PolicyVersion(2)}, {.id = 2, .version = PolicyVersion(3)}};
  PartialResponse ahead = begun;
  ahead.tokens.push_back({.id = 3, .version = PolicyVersion(5)});
  run->Abandon({GroupId(1), /*keep_prefix=*/true},
               {.group = GroupId(1), .members = {0, 2, 3}, .responses = {begun, {}, ahead}});
  EXPECT_EQ(run->journal().totals().num_tokens_generated, 0);
  // The checkpoint holds them, too.
  const Result<RunCheckpoint> saved = run->Describe(PolicyVersion(4), PolicyVersion(4));
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  ASSERT_EQ(saved->kept.size(), 1U);
  EXPECT_EQ(saved->kept[0].group, GroupId(7));
  EXPECT_EQ(saved->kept[0].members, (std::vector<int64_t>{0, 2, 3}));

  const GroupRequest next = start(2, 4);
  ASSERT_EQ(next.resumed.size(), 4U);
  EXPECT_EQ(next.resumed[0].tokens, begun.tokens);
  EXPECT_EQ(next.resumed[0].num_interrupts, 1);
  EXPECT_TRUE(next.resumed[0].awaits_score);
  EXPECT_TRUE(next.resumed[1].tokens.empty());
  // Its last token is of a version that the worker does not have yet: it starts again.
  EXPECT_TRUE(next.resumed[3].tokens.empty());
  EXPECT_EQ(run->journal().totals().num_tokens_generated, 3);
  EXPECT_EQ(run->journal().totals().num_tokens_never_trained, 3);
  EXPECT_TRUE(start(3, 4).resumed.empty());
}

TEST(TrainingRunTest, AcquiredResourcesAreNotAcquiredAgain) {
  Settings settings = SmallSettings();
  settings.tools.use = "code_interpreter";
  settings.tools.python = "/nowhere/python";  // a sandbox of these settings cannot start
  const Policy policy = SmallPolicy(settings);
  EXPECT_FALSE(RunResources::Acquire(settings, policy).ok());
  struct NoRunner final : ProgramRunner {
    Result<ProgramResult> Run(const ProgramRequest&, const Cancellation&) override {
      return Unavailable("runs nothing");
    }
  };
  RunSetup setup;
  setup.resources.emplace().executor =
      std::make_shared<ToolExecutor>(std::make_unique<NoRunner>(), /*reuse=*/false);
  const StoppedClock clock;
  Result<Policy> tools = NewCharacterPolicy(settings.model, 5, CharacterSet::kTools);
  ASSERT_TRUE(tools.ok()) << tools.status().message();
  const Result<std::unique_ptr<TrainingRun>> run =
      TrainingRun::Create(settings, *tools, clock, setup);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ((*run)->executor(), setup.resources->executor);
}

TEST(TrainingRunTest, ARetryOfAPromptHasRandomNumbersOfItsOwn) {
  const Settings settings = SmallSettings();
  const Policy policy = SmallPolicy(settings);
  const StoppedClock clock;
  const auto run = MakeRun(settings, policy, clock);
  const auto seed = [&](int64_t group, int64_t attempt) {
    return run->Start({GroupId(group), WorkerId(0), PromptIndex(7), attempt}, PolicyVersion(0))
        ->seed;
  };
  EXPECT_EQ(seed(1, 1), static_cast<uint64_t>(settings.run.seed));
  EXPECT_NE(seed(2, 2), seed(3, 1));
  EXPECT_NE(seed(4, 2), seed(5, 3));
  EXPECT_EQ(seed(6, 2), seed(7, 2));
}

// The greedy response of a group, from its request to the batch it is not part of.

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
