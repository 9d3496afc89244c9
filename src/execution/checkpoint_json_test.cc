#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "execution/run_checkpoint.h"

namespace pace {
namespace {

// As earlier versions wrote them.
constexpr char kGroup[] =
    R"({"group":41,"prompt":12,"worker":1,"prompt_tokens":[3,4,5],"greedy_last":true,)"
    R"("members":[null,{"reason":0,"correct":true,"reward":0.3333333333333333,"completed":5,)"
    R"("tokens":[[7,3,-0.1,-0.1],[17,4,-0.33,null],[2,4]],"prefix_score":0.25,)"
    R"("awaits_score":true,"num_interrupts":2,"rests":1}]})";
constexpr char kInFlight[] =
    R"({"group":3,"responses":[{"member":0,"tokens":[[7,3,-0.1,-0.1]],"prefix_score":null,)"
    R"("awaits_score":false,"num_interrupts":0},{"member":2,"tokens":[],"prefix_score":0.5,)"
    R"("awaits_score":false,"num_interrupts":1}]})";

TEST(CheckpointJsonTest, AGroupOfAnEarlierVersionIsRead) {
  const Result<GroupTrajectories> group = GroupFromJson(kGroup);
  ASSERT_TRUE(group.ok()) << group.status().message();
  EXPECT_EQ(group->group, GroupId(41));
  EXPECT_EQ(group->prompt, PromptIndex(12));
  EXPECT_EQ(group->worker, WorkerId(1));
  EXPECT_EQ(group->prompt_tokens, (std::vector<TokenId>{3, 4, 5}));
  EXPECT_TRUE(group->greedy_last);
  ASSERT_EQ(group->members.size(), 2U);
  EXPECT_FALSE(group->members[0].has_value());
  const Trajectory& member = *group->members[1];
  EXPECT_TRUE(member.correct);
  EXPECT_EQ(member.reward, 1.0 / 3);
  EXPECT_EQ(member.completed, PolicyVersion(5));
  const std::vector<TokenRecord> tokens = {
      {.id = 7, .version = PolicyVersion(3), .logprob = -0.1F, .sampled_logprob = -0.1F},
      {.id = 17,
       .version = PolicyVersion(4),
       .logprob = -0.33F,
       .sampled_logprob = -std::numeric_limits<float>::infinity()},
      {.id = 2, .is_tool = true, .version = PolicyVersion(4)}};
  EXPECT_EQ(member.response.tokens, tokens);
  EXPECT_EQ(member.response.prefix_score, 0.25);
  EXPECT_EQ(member.response.paused, FinishReason::kStopString);
}

TEST(CheckpointJsonTest, ResponsesInFlightOfAnEarlierVersionAreRead) {
  const Result<GroupInFlight> group = InFlightFromJson(kInFlight);
  ASSERT_TRUE(group.ok()) << group.status().message();
  EXPECT_EQ(group->group, GroupId(3));
  EXPECT_EQ(group->members, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(group->responses[0].tokens.size(), 1U);
  EXPECT_EQ(group->responses[1].prefix_score, 0.5);
}

// Every key of a JSON object as written, at any depth: `take` gets the text before it, the
// pair itself, and the text behind it.
template <typename Take>
void ForEveryPair(const std::string& json, const Take& take) {
  for (size_t at = json.find('"'); at != std::string::npos; at = json.find('"', at + 1)) {
    const size_t close = json.find('"', at + 1);
    if (close == std::string::npos || json[close + 1] != ':') continue;
    size_t end = close + 2;
    for (int depth = 0; end < json.size(); ++end) {
      const char c = json[end];
      if (depth == 0 && (c == ',' || c == '}')) break;
      depth += c == '[' || c == '{' ? 1 : 0;
      depth -= c == ']' || c == '}' ? 1 : 0;
    }
    take(json.substr(0, at), json.substr(at, end - at), json.substr(end));
    at = close;
  }
}

TEST(CheckpointJsonTest, KeysThatAreMissingOrGivenTwiceAreRefused) {
  RunCheckpoint run;
  run.record_sizes = {{"metrics.jsonl", 77}};
  run.calls = {{.id = {GroupId(1), 0}, .made = Seconds(1), .due = Seconds(2)}};
  std::string run_json = RunToJson(run);
  run_json.pop_back();
  const std::set<std::string> optional = {"busy",  "greedy_last", "rests",
                                          "calls", "warnings",    "metrics.jsonl"};
  int num_tried = 0;
  for (const std::string& json : {std::string(kGroup), std::string(kInFlight), run_json}) {
    const auto reads = [&](const std::string& text) {
      RunCheckpoint ignored;
      if (json == kGroup) return GroupFromJson(text).ok();
      return json == kInFlight ? InFlightFromJson(text).ok() : RunFromJson(text, ignored).ok();
    };
    ASSERT_TRUE(reads(json)) << json;
    ForEveryPair(json, [&](std::string before, const std::string& pair, const std::string& after) {
      ++num_tried;
      EXPECT_FALSE(reads(Concat(before, pair, ",", pair, after))) << pair << " twice";
      const std::string key = pair.substr(1, pair.find('"', 1) - 1);
      if (optional.contains(key)) return;
      std::string rest = after;
      if (rest.starts_with(",")) {
        rest.erase(0, 1);
      } else if (before.ends_with(",")) {
        before.pop_back();
      }
      EXPECT_FALSE(reads(before + rest)) << "without " << pair;
    });
  }
  EXPECT_GT(num_tried, 40);
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
  run.warnings.repeats.back() = {.count = 5, .next = 8};
  run.warnings.failed_rewards = {.count = 3, .next = 4};
  run.warnings.num_equal_steps = 3;
  run.warnings.num_wrong_steps = 4;
  run.warnings.num_wrong_responses = 64;
  run.warnings.any_correct = true;
  run.warnings.num_dropped = 7;
  RunJournal::UnderWay& step = run.under_way.emplace();
  step.journal.pool_bytes = 5;
  step.journal.drawn.plan = {.step = PolicyVersion(9), .occupancy = 3, .budget = 0.25};
  step.journal.drawn.num_offered = 2;
  step.journal.drawn.reward_offered = {.sum = -1.0 / 3, .max = -0.1, .count = 2};
  step.facts = {.step = 9, .budget = 0.25, .num_offered = 2, .last_response = "\"so\"\n"};
  run.record_sizes = {{"metrics.jsonl", 77}};
  run.version = "1.2.3";
  run.commit = "abc";
  RunCheckpoint again;
  const Status status = RunFromJson(RunToJson(run), again);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(RunToJson(again), RunToJson(run));
  EXPECT_EQ(again.time, run.time);
  EXPECT_EQ(again.record_sizes, run.record_sizes);
  EXPECT_EQ(again.warnings.repeats.back().next, 8);
  EXPECT_EQ(again.warnings.failed_rewards.count, 3);
  EXPECT_EQ(again.warnings.num_wrong_responses, 64);
  EXPECT_TRUE(again.warnings.any_correct);
  EXPECT_EQ(again.version, "1.2.3");
  EXPECT_EQ(again.under_way->journal.drawn.reward_offered.sum, -1.0 / 3);
  EXPECT_EQ(again.under_way->journal.drawn.plan.budget, 0.25);
  EXPECT_EQ(again.under_way->facts.last_response, "\"so\"\n");
}

TEST(CheckpointJsonTest, EveryTruncationIsAnError) {
  const std::string group = kGroup;
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
  EXPECT_FALSE(RunFromJson(R"({"format":3})", ignored).ok());
}

}  // namespace
}  // namespace pace
