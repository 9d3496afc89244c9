// Engines whose decoder begins the next pass before it is asked to.
#include <gtest/gtest.h>

#include <map>

#include "rollout/engine_core.h"
#include "rollout/fake_decoder.h"
#include "rollout/scheduler.h"

namespace pace {
namespace {

std::shared_ptr<const DecoderWeights> SpeculativeWeights(int64_t version) {
  return std::make_shared<FakeDecoder::Weights>(static_cast<uint64_t>(version));
}

GroupRequest SpeculativeRequest(int64_t group, int64_t max_tokens, int64_t num_responses) {
  GroupRequest request;
  request.group = GroupId(group);
  request.prompt = PromptIndex(group);
  request.seed = 5;
  request.prompt_tokens = {1, 2, 3, static_cast<TokenId>(group % 13)};
  request.num_responses = num_responses;
  request.stop.max_tokens = max_tokens;
  request.stop.stop_tokens = {7};
  return request;
}

struct Outcome {
  std::map<MemberId, PartialResponse> finished;
  int64_t num_sampled = 0;
  int64_t num_found = 0;
};

// Groups come one after the other; a sync before every so many steps.
Outcome Generate(bool speculates, int64_t num_blocks, int64_t max_tokens, int64_t sync_every) {
  auto owned = std::make_unique<FakeDecoder>(
      FakeDecoder::Options{.vocab_size = 120, .num_blocks = num_blocks, .speculates = speculates});
  FakeDecoder* const decoder = owned.get();
  EngineCore engine(std::move(owned), std::nullopt, {.max_pass_tokens = 64});
  EXPECT_TRUE(engine.Sync(PolicyVersion(0), SpeculativeWeights(0)).ok());
  Outcome outcome;
  int64_t version = 0;
  int64_t num_submitted = 0;
  for (int64_t step = 0; engine.busy() || num_submitted < 20; ++step) {
    if (num_submitted < 20 && step % 9 == 0) {
      EXPECT_TRUE(engine.Submit(SpeculativeRequest(++num_submitted, max_tokens, 3)).ok());
    }
    if (sync_every > 0 && step % sync_every == sync_every - 1) {
      ++version;
      EXPECT_TRUE(engine.Sync(PolicyVersion(version), SpeculativeWeights(version)).ok());
    }
    const Result<StepReport> report = engine.Step();
    EXPECT_TRUE(report.ok()) << report.status().message();
    if (!report.ok()) break;
    engine.CheckInvariants();
    outcome.num_sampled += std::ssize(report->sampled);
    for (const FinishedResponse& one : report->finished) outcome.finished[one.id] = one.response;
  }
  outcome.num_found = decoder->num_found();
  return outcome;
}

TEST(RunAheadTest, TheSameTokensAndMostRowsAreThere) {
  const Outcome behind = Generate(false, 500, 80, 0);
  const Outcome ahead = Generate(true, 500, 80, 0);
  EXPECT_EQ(ahead.finished, behind.finished);
  EXPECT_EQ(ahead.finished.size(), 60);
  EXPECT_EQ(behind.num_found, 0);
  EXPECT_GT(ahead.num_found, ahead.num_sampled * 3 / 4);
}

TEST(RunAheadTest, WhatWasBegunUnderOldWeightsIsNotUsed) {
  // The fake reads its cache back: a row of old weights would be found out.
  const Outcome behind = Generate(false, 500, 80, 25);
  const Outcome ahead = Generate(true, 500, 80, 25);
  EXPECT_EQ(ahead.finished, behind.finished);
  EXPECT_GT(ahead.num_found, ahead.num_sampled / 2);
}

TEST(RunAheadTest, AFullCacheFinishesTheSameTokens) {
  // Room for little more than one group at its longest.
  const Outcome behind = Generate(false, 20, 80, 0);
  const Outcome ahead = Generate(true, 20, 80, 0);
  EXPECT_EQ(ahead.finished, behind.finished);
  EXPECT_EQ(ahead.finished.size(), 60);
}

TEST(RunAheadTest, RoomIsTakenWhereItIsFreeAndFromNobody) {
  for (const int64_t num_blocks : {4, 5, 40}) {
    Scheduler scheduler(
        {.num_blocks = num_blocks, .max_pass_tokens = 64, .speculative_room = true});
    const std::vector<int64_t> fresh = {0};
    // Two sequences of up to 32 tokens: two blocks each.
    ASSERT_TRUE(scheduler.Add(10, 23, fresh).ok());
    ASSERT_TRUE(scheduler.Add(10, 23, fresh).ok());
    int64_t num_with_room = 0;
    while (scheduler.num_unfinished() > 0) {
      const PassPlan& plan = scheduler.Next();
      EXPECT_TRUE(plan.preempted.empty());
      std::vector<RowEnd> ends;
      for (const PlannedChunk& chunk : plan.chunks) {
        const int64_t end = chunk.start + chunk.num_tokens;
        EXPECT_LE(chunk.blocks.size(), 2);
        // At the last token of a block the next one is there, unless it was the last.
        if (end == 16 && chunk.blocks.size() == 2) ++num_with_room;
        ends.push_back(end == 32 ? RowEnd::kEnds : RowEnd::kGrows);
      }
      scheduler.Commit(ends);
      scheduler.CheckInvariants();
    }
    EXPECT_EQ(num_with_room, 2) << num_blocks << " blocks";
    EXPECT_EQ(scheduler.num_free_blocks(), num_blocks);
  }
}

}  // namespace
}  // namespace pace
