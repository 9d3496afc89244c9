// Responses that rest at a stop, and go on with what a tool says.
#include <gtest/gtest.h>

#include "rollout/engine_core.h"
#include "rollout/fake_decoder.h"
#include "rollout/test_tokenizers.h"

namespace pace {
namespace {

constexpr TokenId kStop = 4;

std::unique_ptr<EngineCore> Engine(const RolloutOptions& options) {
  auto engine =
      std::make_unique<EngineCore>(std::make_unique<FakeDecoder>(FakeDecoder::Options{
                                       .vocab_size = 13, .max_positions = 4000, .num_blocks = 200}),
                                   LetterTokenizer(12), options);
  EXPECT_TRUE(engine->Sync(PolicyVersion(0), std::make_shared<FakeDecoder::Weights>(0)).ok());
  return engine;
}

GroupRequest PausedRequest(int64_t max_tokens) {
  GroupRequest request;
  request.group = GroupId(1);
  request.prompt = PromptIndex(1);
  request.seed = 7;
  request.prompt_tokens = {1, 2, 3};
  request.num_responses = 2;
  request.stop = {.max_tokens = max_tokens, .stop_tokens = {kStop}, .pauses = true};
  return request;
}

const MemberId kFirst{GroupId(1), 0};

// Until that member rests. False: it never does.
bool RunToRest(EngineCore& engine, MemberId id) {
  while (engine.busy()) {
    const Result<StepReport> report = engine.Step();
    EXPECT_TRUE(report.ok());
    engine.CheckInvariants();
    for (const MemberId paused : report->paused) {
      if (paused == id) return true;
    }
  }
  return false;
}

TEST(RestingTest, AStopLetsTheResponseRestAndLeaveItsPlace) {
  const auto engine = Engine({});
  ASSERT_TRUE(engine->Submit(PausedRequest(400)).ok());
  ASSERT_TRUE(RunToRest(*engine, kFirst));
  EXPECT_EQ(engine->Peek(kFirst)->paused, FinishReason::kStopToken);
  EXPECT_EQ(engine->Peek(kFirst)->tokens.back().id, kStop);
  while (engine->busy()) ASSERT_TRUE(engine->Step().ok());
  EXPECT_TRUE(engine->Peek({GroupId(1), 1})->paused.has_value());
  EXPECT_EQ(engine->num_running(), 0);
  EXPECT_EQ(engine->num_unfinished(), 2);
  // The block of their prompt stays until somebody needs it.
  EXPECT_EQ(engine->num_free_blocks(), 199);
}

TEST(RestingTest, WhatIsGivenIsContextAndNotSampled) {
  const auto engine = Engine({});
  ASSERT_TRUE(engine->Submit(PausedRequest(400)).ok());
  ASSERT_TRUE(RunToRest(*engine, kFirst));
  const size_t before = engine->Peek(kFirst)->tokens.size();
  ASSERT_TRUE(engine->Continue(kFirst, std::vector<TokenId>{9, 10, 11}).ok());
  ASSERT_TRUE(RunToRest(*engine, kFirst));
  const FinishedResponse finished = engine->FinishPaused(kFirst);
  EXPECT_EQ(finished.reason, FinishReason::kStopToken);
  EXPECT_FALSE(finished.response.paused.has_value());
  for (size_t i = 0; i < finished.response.tokens.size(); ++i) {
    const bool given = i >= before && i < before + 3;
    EXPECT_EQ(finished.response.tokens[i].is_tool, given) << i;
    if (given) {
      EXPECT_EQ(finished.response.tokens[i].logprob, 0);
    }
  }
  EXPECT_EQ(finished.response.num_policy_tokens() + 3,
            static_cast<int64_t>(finished.response.tokens.size()));
  EXPECT_EQ(engine->Peek(kFirst), nullptr);
}

TEST(RestingTest, WhatWouldFillTheResponseIsRefusedAndItStillRests) {
  const auto engine = Engine({});
  ASSERT_TRUE(engine->Submit(PausedRequest(400)).ok());
  ASSERT_TRUE(RunToRest(*engine, kFirst));
  const Status full = engine->Continue(kFirst, std::vector<TokenId>(400, 9));
  EXPECT_NE(full.message().find("leave no room"), std::string::npos) << full.message();
  const Status bad = engine->Continue(kFirst, std::vector<TokenId>{99});
  EXPECT_NE(bad.message().find("tool_tokens[0] = 99"), std::string::npos) << bad.message();
  EXPECT_TRUE(engine->Peek(kFirst)->paused.has_value());
  EXPECT_EQ(engine->FinishPaused(kFirst).reason, FinishReason::kStopToken);
}

// The budget spans the whole interaction.
TEST(RestingTest, TheBudgetEndsAResponseWhateverItWaitsFor) {
  const auto engine = Engine({});
  GroupRequest request = PausedRequest(60);
  request.stop.stop_tokens = {0, 1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(engine->Submit(request).ok());
  int64_t num_finished = 0;
  while (engine->num_unfinished() > 0) {
    for (const MemberId id : {kFirst, MemberId{GroupId(1), 1}}) {
      if (engine->Peek(id) == nullptr || !engine->Peek(id)->paused) continue;
      if (!engine->Continue(id, std::vector<TokenId>{9, 9, 9, 9}).ok()) {
        ++num_finished;
        EXPECT_GE(engine->FinishPaused(id).response.tokens.size(), 56U);
      }
    }
    const Result<StepReport> report = engine->Step();
    ASSERT_TRUE(report.ok());
    for (const FinishedResponse& finished : report->finished) {
      ++num_finished;
      EXPECT_EQ(finished.response.tokens.size(), 60U);
    }
  }
  EXPECT_EQ(num_finished, 2);
}

TEST(RestingTest, ASyncDuringTheRestIsAnInterruptionScoredOnTheWayBack) {
  const auto engine = Engine({.min_scored = 1});
  ASSERT_TRUE(engine->Submit(PausedRequest(400)).ok());
  ASSERT_TRUE(RunToRest(*engine, kFirst));
  const auto num_sampled = engine->Peek(kFirst)->num_policy_tokens();
  ASSERT_TRUE(engine->Continue(kFirst, std::vector<TokenId>{9, 10}).ok());
  ASSERT_TRUE(RunToRest(*engine, kFirst));
  EXPECT_FALSE(engine->Peek(kFirst)->prefix_score.has_value());
  ASSERT_TRUE(engine->Sync(PolicyVersion(1), std::make_shared<FakeDecoder::Weights>(1)).ok());
  EXPECT_EQ(engine->Peek(kFirst)->num_interrupts, 1);
  EXPECT_TRUE(engine->Peek(kFirst)->awaits_score);
  ASSERT_TRUE(engine->Continue(kFirst, {}).ok());
  ASSERT_TRUE(RunToRest(*engine, kFirst));
  const FinishedResponse finished = engine->FinishPaused(kFirst);
  ASSERT_TRUE(finished.response.prefix_score.has_value());
  EXPECT_EQ(finished.response.tokens.back().version, PolicyVersion(1));
  EXPECT_GT(finished.response.num_policy_tokens(), num_sampled);
}

TEST(RestingTest, AnEndAtRestKeepsTheScoreItHad) {
  const auto engine = Engine({.min_scored = 1});
  ASSERT_TRUE(engine->Submit(PausedRequest(400)).ok());
  ASSERT_TRUE(RunToRest(*engine, kFirst));
  ASSERT_TRUE(engine->Sync(PolicyVersion(1), std::make_shared<FakeDecoder::Weights>(1)).ok());
  const FinishedResponse finished = engine->FinishPaused(kFirst);
  EXPECT_FALSE(finished.response.prefix_score.has_value());
  EXPECT_FALSE(finished.response.awaits_score);
  EXPECT_EQ(finished.response.num_interrupts, 1);
}

TEST(RestingTest, ADrainedSyncWaitsForWhatRests) {
  const auto engine = Engine({.sync_mode = SyncMode::kDrain});
  GroupRequest request = PausedRequest(400);
  request.num_responses = 1;
  ASSERT_TRUE(engine->Submit(request).ok());
  ASSERT_TRUE(RunToRest(*engine, kFirst));
  ASSERT_TRUE(engine->Sync(PolicyVersion(1), std::make_shared<FakeDecoder::Weights>(1)).ok());
  EXPECT_EQ(engine->version(), PolicyVersion(0));
  EXPECT_FALSE(engine->busy());
  engine->FinishPaused(kFirst);
  ASSERT_TRUE(engine->busy());
  EXPECT_EQ(engine->Step()->synced, PolicyVersion(1));
}

}  // namespace
}  // namespace pace
