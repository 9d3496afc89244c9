#include <gtest/gtest.h>

#include <limits>

#include "execution/checkpoint.h"

namespace pace {
namespace {

PartialResponse Response() {
  PartialResponse response;
  response.tokens = {
      {.id = 7, .version = PolicyVersion(3), .logprob = -0.1F, .sampled_logprob = -0.1F},
      {.id = 17,
       .version = PolicyVersion(4),
       .logprob = -1.0F / 3,
       .sampled_logprob = -std::numeric_limits<float>::infinity()},
      {.id = 2, .given = true, .version = PolicyVersion(4)}};
  response.rests = FinishReason::kStopString;
  response.prefix_score = 1.0 / 7;
  response.awaits_score = true;
  response.num_interrupts = 2;
  return response;
}

GroupTrajectories Group() {
  GroupTrajectories group;
  group.group = GroupId(41);
  group.prompt = PromptIndex(12);
  group.worker = WorkerId(1);
  group.prompt_tokens = {3, 4, 5};
  group.greedy_last = true;
  group.members.resize(2);
  group.members[1] = Trajectory{.response = Response(),
                                .reason = FinishReason::kStopToken,
                                .correct = true,
                                .reward = 1.0 / 3,
                                .completed = PolicyVersion(5)};
  return group;
}

TEST(CheckpointJsonTest, AGroupReadsBackToTheBit) {
  const GroupTrajectories group = Group();
  const Result<GroupTrajectories> again = GroupFromJson(GroupToJson(group));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->group, group.group);
  EXPECT_EQ(again->prompt, group.prompt);
  EXPECT_EQ(again->worker, group.worker);
  EXPECT_EQ(again->prompt_tokens, group.prompt_tokens);
  EXPECT_TRUE(again->greedy_last);
  ASSERT_EQ(again->members.size(), 2U);
  EXPECT_FALSE(again->members[0].has_value());
  EXPECT_EQ(again->members[1]->response, group.members[1]->response);
  EXPECT_EQ(again->members[1]->reward, group.members[1]->reward);
  EXPECT_EQ(again->members[1]->completed, group.members[1]->completed);
  EXPECT_TRUE(again->members[1]->correct);
  EXPECT_EQ(again->members[1]->reason, FinishReason::kStopToken);
}

TEST(CheckpointJsonTest, ResponsesInFlightReadBackToTheBit) {
  const GroupInFlight group{
      .group = GroupId(3), .members = {0, 2}, .responses = {Response(), PartialResponse{}}};
  const Result<GroupInFlight> again = InFlightFromJson(InFlightToJson(group));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->group, group.group);
  EXPECT_EQ(again->members, group.members);
  EXPECT_EQ(again->responses, group.responses);
}

TEST(CheckpointJsonTest, TheRunReadsBackToTheBit) {
  RunCheckpoint run;
  run.step = PolicyVersion(9);
  run.served = PolicyVersion(8);
  run.time = Seconds(1.0 / 3);
  run.step_clock.part = StepPart::kOther;
  run.step_clock.last = Seconds(0.1);
  run.step_clock.parts[2] = Seconds(1.0 / 9);
  run.rescoring = Seconds(0.7);
  run.totals.num_tokens_generated = 12;
  run.step_totals.num_interrupted = 5;
  run.record_sizes = {{"metrics.jsonl", 77}};
  RunCheckpoint again;
  const Status status = RunFromJson(RunToJson(run), again);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(RunToJson(again), RunToJson(run));
  EXPECT_EQ(again.time, run.time);
  EXPECT_EQ(again.record_sizes, run.record_sizes);
}

TEST(CheckpointJsonTest, EveryTruncationIsAnError) {
  const std::string group = GroupToJson(Group());
  for (size_t size = 0; size < group.size(); ++size) {
    EXPECT_FALSE(GroupFromJson(group.substr(0, size)).ok()) << size;
  }
  std::string run = RunToJson(RunCheckpoint{});
  run.pop_back();  // the newline
  for (size_t size = 0; size < run.size(); ++size) {
    RunCheckpoint ignored;
    EXPECT_FALSE(RunFromJson(run.substr(0, size), ignored).ok()) << size;
  }
}

TEST(CheckpointJsonTest, UnknownKeysAndWrongTypesAreRefused) {
  EXPECT_FALSE(GroupFromJson(R"({"group":1,"colour":2})").ok());
  EXPECT_FALSE(GroupFromJson(R"({"group":"1"})").ok());
  EXPECT_FALSE(GroupFromJson(R"({"group":1,"greedy_last":true,"members":[null]})").ok());
  EXPECT_FALSE(InFlightFromJson(R"({"group":1,"responses":[{"member":-1}]})").ok());
  RunCheckpoint ignored;
  EXPECT_FALSE(RunFromJson(R"({"format":2})", ignored).ok());
}

}  // namespace
}  // namespace pace
