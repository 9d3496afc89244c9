#include "rollout/engine_core.h"

#include <gtest/gtest.h>

#include <map>

#include "rollout/fake_decoder.h"
#include "rollout/test_tokenizers.h"

namespace pace {
namespace {

std::shared_ptr<const DecoderWeights> Weights(int64_t version) {
  return std::make_shared<FakeDecoder::Weights>(static_cast<uint64_t>(version));
}

// An engine over the fake decoder.
struct Fixture {
  explicit Fixture(const RolloutOptions& options, int64_t num_blocks = 200) {
    auto owned = std::make_unique<FakeDecoder>(
        FakeDecoder::Options{.vocab_size = 13,
                             .max_positions = 4000,
                             .num_blocks = num_blocks,
                             .check_weights = options.sync_mode != SyncMode::kKeep});
    decoder = owned.get();
    engine = std::make_unique<EngineCore>(std::move(owned), LetterTokenizer(12), options);
    Sync(0);
  }

  void Sync(int64_t version) const {
    const Status status = engine->Sync(PolicyVersion(version), Weights(version));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void Submit(GroupRequest request) const {
    const Status status = engine->Submit(std::move(request));
    ASSERT_TRUE(status.ok()) << status.message();
  }
  StepReport Step() {
    const Result<StepReport> report = engine->Step();
    EXPECT_TRUE(report.ok()) << report.status().message();
    engine->CheckInvariants();
    for (const FinishedResponse& response : report->finished) finished[response.id] = response;
    return *report;
  }
  void Steps(int64_t n) {
    for (int64_t i = 0; i < n; ++i) Step();
  }
  void Finish() {
    while (engine->busy()) Step();
  }
  int64_t NumTokens(int64_t group, int64_t member = 0) const {
    return static_cast<int64_t>(engine->Peek({GroupId(group), member})->tokens.size());
  }
  const PartialResponse& Finished(int64_t group, int64_t member = 0) {
    return finished.at({GroupId(group), member}).response;
  }

  FakeDecoder* decoder;
  std::unique_ptr<EngineCore> engine;
  std::map<MemberId, FinishedResponse> finished;
};

GroupRequest Request(int64_t group, int64_t max_tokens, int64_t num_responses = 1) {
  GroupRequest request;
  request.group = GroupId(group);
  request.prompt = PromptIndex(group);
  request.seed = 5;
  request.prompt_tokens = {1, 2, 3, static_cast<TokenId>(group % 13)};
  request.num_responses = num_responses;
  request.stop.max_tokens = max_tokens;
  return request;
}

TEST(EngineCoreTest, EveryTokenRecordsTheVersionThatSampledIt) {
  Fixture f({});
  f.Submit(Request(1, 6));
  f.Steps(2);
  f.Sync(3);
  f.Steps(1);
  f.Sync(7);
  f.Finish();
  std::vector<int64_t> versions;
  for (const TokenRecord& token : f.Finished(1).tokens) versions.push_back(token.version.step());
  EXPECT_EQ(versions, (std::vector<int64_t>{0, 0, 3, 7, 7, 7}));
  EXPECT_EQ(f.Finished(1).num_interrupts, 2);
}

TEST(EngineCoreTest, AResponseIsTheSameAloneAndInACrowd) {
  Fixture alone({});
  alone.Submit(Request(1, 40));
  alone.Finish();
  Fixture crowd({.max_pass_tokens = 7}, /*num_blocks=*/8);
  for (int64_t group = 2; group < 9; ++group) crowd.Submit(Request(group, 60, 3));
  crowd.Submit(Request(1, 40));
  crowd.Finish();
  EXPECT_EQ(crowd.Finished(1).tokens, alone.Finished(1).tokens);
}

TEST(EngineCoreTest, APromptIsScoredInWhateverChunksItIsRead) {
  GroupRequest request = Request(1, 5);
  for (TokenId i = 0; i < 70; ++i) request.prompt_tokens.push_back(i * 5 % 13);
  request.score_prompt = true;
  Fixture alone({});
  alone.Submit(request);
  alone.Finish();
  const std::vector<float>& scores = alone.Finished(1).prompt_logprobs;
  ASSERT_EQ(scores.size(), request.prompt_tokens.size() - 1);
  uint64_t hash = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    hash = FakeNetwork::Extend(hash, request.prompt_tokens[i]);
    EXPECT_EQ(scores[i], FakeNetwork::LogProb(hash, 0, 1.0, request.prompt_tokens[i + 1])) << i;
  }
  // Small passes, and others that preempt it.
  Fixture crowd({.max_pass_tokens = 7}, /*num_blocks=*/12);
  for (int64_t group = 2; group < 9; ++group) crowd.Submit(Request(group, 60, 3));
  crowd.Submit(request);
  crowd.Finish();
  EXPECT_EQ(crowd.Finished(1).prompt_logprobs, scores);
  EXPECT_EQ(crowd.Finished(1).tokens, alone.Finished(1).tokens);
  EXPECT_TRUE(crowd.Finished(2).prompt_logprobs.empty());
}

TEST(EngineCoreTest, APromptIsScoredUnderTheWeightsThatSampleTheFirstToken) {
  GroupRequest request = Request(1, 5);
  for (TokenId i = 0; i < 70; ++i) request.prompt_tokens.push_back(i * 5 % 13);
  request.score_prompt = true;
  Fixture synced({.max_pass_tokens = 16});
  synced.Submit(request);
  synced.Steps(2);
  synced.Sync(1);
  synced.Finish();
  Fixture fresh({.max_pass_tokens = 16});
  fresh.Sync(1);
  fresh.Submit(request);
  fresh.Steps(6);
  fresh.Sync(2);
  fresh.Finish();
  EXPECT_EQ(synced.Finished(1).prompt_logprobs, fresh.Finished(1).prompt_logprobs)
      << "and a later sync changes nothing";
}

TEST(EngineCoreTest, APromptsScoresSurviveACancellation) {
  GroupRequest request = Request(1, 50);
  request.score_prompt = true;
  Fixture f({});
  f.Submit(request);
  f.Steps(3);
  std::optional<GroupRequest> resumed = f.engine->Cancel(GroupId(1));
  ASSERT_TRUE(resumed.has_value());
  EXPECT_EQ(resumed->resumed[0].prompt_logprobs.size(), 3);
  EXPECT_EQ(resumed->resumed[0].tokens.size(), 3);
  const std::vector<float> scores = resumed->resumed[0].prompt_logprobs;
  f.Submit(*resumed);
  f.Finish();
  EXPECT_EQ(f.Finished(1).prompt_logprobs, scores);
  GroupRequest two = Request(2, 5, 2);
  two.score_prompt = true;
  EXPECT_FALSE(f.engine->Submit(two).ok()) << "of one response alone";
}

TEST(EngineCoreTest, AClearedCacheMakesAKeptSyncLikeARecomputedOne) {
  const auto generate = [](const RolloutOptions& options, bool clears) {
    Fixture f(options);
    f.Submit(Request(1, 30));
    f.Steps(5);
    if (clears) f.engine->InvalidateCache();
    f.Sync(1);
    f.Finish();
    return f.Finished(1).tokens;
  };
  const auto recomputed = generate({.score_prefixes = false}, false);
  EXPECT_EQ(generate({.sync_mode = SyncMode::kKeep}, true), recomputed);
}

TEST(EngineCoreTest, AClearedCacheAloneChangesNothing) {
  Fixture f({});
  f.Submit(Request(1, 30));
  f.Steps(5);
  f.engine->InvalidateCache();
  f.Finish();
  Fixture same({});
  same.Submit(Request(1, 30));
  same.Finish();
  EXPECT_EQ(f.Finished(1).tokens, same.Finished(1).tokens);
  EXPECT_EQ(f.Finished(1).num_interrupts, 0);
}

TEST(EngineCoreTest, MembersOfAGroupDiffer) {
  Fixture f({});
  f.Submit(Request(1, 20, 3));
  f.Finish();
  EXPECT_NE(f.Finished(1, 0).tokens, f.Finished(1, 1).tokens);
  EXPECT_NE(f.Finished(1, 1).tokens, f.Finished(1, 2).tokens);
}

TEST(EngineCoreTest, OneMemberMayBeGreedyAndTheOthersAreAsTheyWere) {
  GroupRequest mixed = Request(1, 20, 3);
  mixed.greedy_member = 1;
  mixed.sampling.temperature = 1.5;
  GroupRequest sampled = mixed;
  sampled.greedy_member.reset();
  GroupRequest greedy = mixed;
  greedy.sampling = {.temperature = 0};
  Fixture f({});
  Fixture of_sampled({});
  Fixture of_greedy({});
  f.Submit(mixed);
  of_sampled.Submit(sampled);
  of_greedy.Submit(greedy);
  for (Fixture* one : {&f, &of_sampled, &of_greedy}) {
    one->Steps(3);
    one->Sync(1);
    one->Finish();
  }
  EXPECT_EQ(f.Finished(1, 0), of_sampled.Finished(1, 0));
  EXPECT_EQ(f.Finished(1, 1), of_greedy.Finished(1, 1));
  EXPECT_EQ(f.Finished(1, 2), of_sampled.Finished(1, 2));
  EXPECT_NE(f.Finished(1, 1), of_sampled.Finished(1, 1));
}

TEST(EngineCoreTest, AnInterruptedPrefixIsScoredByTheRebuildAlone) {
  Fixture f({.min_scored = 8, .max_scored = 10, .max_pass_tokens = 6});
  f.Submit(Request(1, 30));
  while (f.NumTokens(1) < 12) f.Step();
  f.Sync(1);
  EXPECT_TRUE(f.engine->Peek({GroupId(1), 0})->awaits_score);
  int64_t num_rows = 0, num_scored = 0, num_reprefilled = 0;
  while (f.NumTokens(1) == 12) {
    const StepReport report = f.Step();
    num_rows += report.num_prefill_rows + report.num_decode_rows;
    num_reprefilled += report.num_reprefill_rows;
    num_scored += report.num_scored_rows;
  }
  EXPECT_EQ(num_rows, 4 + 12);  // the sequence once, no second pass
  EXPECT_EQ(num_reprefilled, 4 + 11);
  EXPECT_EQ(num_scored, 10);
  const PartialResponse* response = f.engine->Peek({GroupId(1), 0});
  EXPECT_FALSE(response->awaits_score);

  uint64_t hash = 0;
  for (const TokenId id : Request(1, 1).prompt_tokens) hash = FakeNetwork::Extend(hash, id);
  double sum = 0;
  for (size_t t = 0; t < 10; ++t) {
    const TokenRecord& token = response->tokens[t];
    sum += std::abs(static_cast<double>(FakeNetwork::LogProb(hash, 1, 1.0, token.id)) -
                    static_cast<double>(token.logprob));
    hash = FakeNetwork::Extend(hash, token.id);
  }
  EXPECT_EQ(response->prefix_score, sum / 10);
  EXPECT_GT(*response->prefix_score, 0);
}

TEST(EngineCoreTest, AShortResponseKeepsTheScoreItHas) {
  Fixture f({.min_scored = 8});
  f.Submit(Request(1, 30));
  f.Submit(Request(2, 30));
  f.Steps(7);
  ASSERT_EQ(f.NumTokens(1), 7);
  f.Sync(1);
  f.Steps(1);
  EXPECT_EQ(f.engine->Peek({GroupId(1), 0})->prefix_score, std::nullopt);
  f.Sync(2);  // now it has eight
  f.Steps(1);
  const auto first = f.engine->Peek({GroupId(1), 0})->prefix_score;
  EXPECT_TRUE(first.has_value());
  f.Sync(3);
  f.Steps(1);
  EXPECT_NE(f.engine->Peek({GroupId(1), 0})->prefix_score, first);
  EXPECT_EQ(f.engine->Peek({GroupId(1), 0})->num_interrupts, 3);
}

// Three syncs: with kEnd only the last one's score is computed, and it is the same.
TEST(EngineCoreTest, AScoreMayWaitUntilTheResponseEnds) {
  std::map<ScoreMoment, PartialResponse> finished;
  std::map<ScoreMoment, int64_t> num_scored;
  for (const ScoreMoment moment : {ScoreMoment::kReprefill, ScoreMoment::kEnd}) {
    Fixture f({.min_scored = 4, .max_scored = 10, .score_moment = moment, .max_pass_tokens = 5});
    f.Submit(Request(1, 40));
    for (int64_t version = 1; version <= 3; ++version) {
      while (f.NumTokens(1) < 8 * version) num_scored[moment] += f.Step().num_scored_rows;
      f.Sync(version);
    }
    while (f.engine->busy()) {
      const bool awaits = f.engine->Peek({GroupId(1), 0})->awaits_score;
      EXPECT_TRUE(awaits || moment == ScoreMoment::kReprefill);
      num_scored[moment] += f.Step().num_scored_rows;
    }
    finished[moment] = f.Finished(1);
  }
  EXPECT_EQ(finished[ScoreMoment::kEnd], finished[ScoreMoment::kReprefill]);
  EXPECT_TRUE(finished[ScoreMoment::kEnd].prefix_score.has_value());
  EXPECT_EQ(num_scored[ScoreMoment::kReprefill], 8 + 10 + 10);
  EXPECT_EQ(num_scored[ScoreMoment::kEnd], 10);
}

TEST(EngineCoreTest, ScoringCanBeOff) {
  Fixture f({.score_prefixes = false, .min_scored = 1});
  f.Submit(Request(1, 10));
  f.Steps(5);
  f.Sync(1);
  f.Finish();
  EXPECT_EQ(f.Finished(1).prefix_score, std::nullopt);
  EXPECT_EQ(f.Finished(1).num_interrupts, 1);
}

TEST(EngineCoreTest, AThousandResponsesInFlightLoseNoTokenAtASync) {
  Fixture f({.min_scored = 16, .max_scored = 32, .max_pass_tokens = 2048}, 8000);
  for (int64_t group = 0; group < 125; ++group) f.Submit(Request(group, 60, 8));
  while (f.NumTokens(124, 7) < 20) f.Step();
  ASSERT_EQ(f.engine->num_running(), 1000);
  std::map<MemberId, std::vector<TokenRecord>> before;
  for (int64_t group = 0; group < 125; ++group) {
    for (int64_t member = 0; member < 8; ++member) {
      const MemberId id{GroupId(group), member};
      before[id] = f.engine->Peek(id)->tokens;
    }
  }
  f.Sync(1);
  f.Finish();
  ASSERT_EQ(f.finished.size(), 1000u);
  for (const auto& [id, finished] : f.finished) {
    const auto& tokens = finished.response.tokens;
    ASSERT_EQ(tokens.size(), 60u);
    const auto& old = before.at(id);
    EXPECT_TRUE(std::equal(old.begin(), old.end(), tokens.begin()));
    for (size_t t = old.size(); t < tokens.size(); ++t) {
      ASSERT_EQ(tokens[t].version, PolicyVersion(1));
    }
    EXPECT_TRUE(finished.response.prefix_score.has_value());
    EXPECT_EQ(finished.response.num_interrupts, 1);
  }
  EXPECT_EQ(f.engine->num_free_blocks(), 8000);
}

TEST(EngineCoreTest, KeepGoesOnWithTheOldCacheAndScoresNothing) {
  Fixture f({.sync_mode = SyncMode::kKeep, .min_scored = 1});
  f.Submit(Request(1, 10));
  f.Steps(5);
  f.Sync(1);
  const StepReport report = f.Step();
  EXPECT_EQ(report.num_decode_rows, 1);
  EXPECT_EQ(report.num_prefill_rows, 0);
  f.Finish();
  EXPECT_EQ(f.Finished(1).num_interrupts, 1);
  EXPECT_EQ(f.Finished(1).prefix_score, std::nullopt);
  EXPECT_EQ(f.Finished(1).tokens[5].version, PolicyVersion(1));
}

TEST(EngineCoreTest, DrainFinishesWhatHasBegunBeforeItSwaps) {
  Fixture f({.sync_mode = SyncMode::kDrain});
  f.Submit(Request(1, 10));
  f.Steps(3);
  f.Sync(1);
  f.Submit(Request(2, 4));
  EXPECT_EQ(f.engine->version(), PolicyVersion(0));
  f.Sync(2);  // takes the place of the first
  std::vector<PolicyVersion> synced;
  while (f.engine->busy()) {
    const StepReport report = f.Step();
    if (!report.synced) continue;
    synced.push_back(*report.synced);
    EXPECT_TRUE(f.finished.contains({GroupId(1), 0}));
  }
  EXPECT_EQ(synced, std::vector<PolicyVersion>{PolicyVersion(2)});
  for (const TokenRecord& token : f.Finished(1).tokens) EXPECT_EQ(token.version.step(), 0);
  for (const TokenRecord& token : f.Finished(2).tokens) EXPECT_EQ(token.version.step(), 2);
  EXPECT_EQ(f.Finished(1).num_interrupts, 0);
}

TEST(EngineCoreTest, DrainWithNothingInFlightSwapsAtOnce) {
  Fixture f({.sync_mode = SyncMode::kDrain});
  f.Submit(Request(1, 10));
  f.Sync(1);
  EXPECT_EQ(f.engine->version(), PolicyVersion(1));
  f.Finish();
}

TEST(EngineCoreTest, UnfinishedResponsesGoOnElsewhereToTheBit) {
  Fixture whole({.min_scored = 4, .max_pass_tokens = 20});
  Fixture first({.min_scored = 4, .max_pass_tokens = 20});
  for (Fixture* f : {&whole, &first}) {
    f->Submit(Request(1, 30, 3));
    f->Submit(Request(2, 9, 2));
    f->Steps(12);  // group 2 is over, or nearly
    f->Sync(1);
    f->Steps(1);  // in the middle of the rebuild
  }
  whole.Finish();
  std::vector<GroupRequest> unfinished = first.engine->Unfinished();
  ASSERT_FALSE(unfinished.empty());
  Fixture second({.min_scored = 4, .max_pass_tokens = 7}, 12);
  second.Sync(1);
  for (GroupRequest& request : unfinished) second.Submit(std::move(request));
  second.Finish();
  second.finished.merge(first.finished);
  ASSERT_EQ(second.finished.size(), 5u);
  for (const auto& [id, finished] : whole.finished) {
    EXPECT_EQ(second.finished.at(id).response, finished.response);
    EXPECT_EQ(second.finished.at(id).reason, finished.reason);
  }
}

TEST(EngineCoreTest, CancelHandsBackWhatThereIsAndFreesItsBlocks) {
  Fixture f({});
  f.Submit(Request(1, 30, 3));
  f.Submit(Request(2, 30));
  f.Steps(5);
  const auto tokens = f.engine->Peek({GroupId(1), 1})->tokens;
  const auto member = f.engine->Cancel(MemberId{GroupId(1), 1});
  ASSERT_TRUE(member.has_value());
  EXPECT_EQ(member->members, std::vector<int64_t>{1});
  EXPECT_EQ(member->resumed.at(0).tokens, tokens);
  const auto group = f.engine->Cancel(GroupId(1));
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(group->members, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(f.engine->Cancel(GroupId(1)), std::nullopt);
  EXPECT_EQ(f.engine->Peek({GroupId(1), 0}), nullptr);
  f.engine->CheckInvariants();
  f.Finish();
  EXPECT_EQ(f.finished.size(), 1u);
  EXPECT_EQ(f.engine->num_free_blocks(), 200);
}

TEST(EngineCoreTest, AStopStringThatSpansARestartEndsTheResponse) {
  Fixture plain({});
  plain.Submit(Request(1, 30));
  plain.Finish();
  // The letters of tokens 9 to 12, if they are letters and new.
  std::string text;
  for (const TokenRecord& token : plain.Finished(1).tokens) {
    text += token.id < 12 ? static_cast<char>('a' + token.id) : '.';
  }
  const std::string stop = text.substr(9, 4);
  ASSERT_EQ(text.find(stop), 9u) << text;
  ASSERT_EQ(stop.find('.'), std::string::npos) << text;
  GroupRequest request = Request(1, 30);
  request.stop.stop_strings = {stop};
  Fixture first({});
  first.Submit(request);
  first.Steps(11);
  Fixture second({});
  second.Submit(first.engine->Unfinished().at(0));
  second.Finish();
  EXPECT_EQ(second.Finished(1).tokens.size(), 13u);
  EXPECT_EQ(second.finished.begin()->second.reason, FinishReason::kStopString);
}

TEST(EngineCoreTest, ADeviceThatFailsCostsTimeButNoToken) {
  Fixture plain({.min_scored = 4});
  Fixture f({.min_scored = 4});
  for (Fixture* each : {&plain, &f}) {
    each->Submit(Request(1, 30, 3));
    each->Steps(10);
    each->Sync(1);
  }
  for (int i = 0; i < 5; ++i) {
    f.Steps(i);
    f.decoder->FailNext();
    EXPECT_EQ(f.engine->Step().status().message(), "the device failed");
    f.engine->CheckInvariants();
  }
  plain.Finish();
  f.Finish();
  for (const auto& [id, finished] : plain.finished) {
    EXPECT_EQ(f.finished.at(id).response, finished.response);
  }
}

TEST(EngineCoreTest, RefusesWhatItCannotDo) {
  Fixture f({}, /*num_blocks=*/4);
  f.Submit(Request(1, 5));
  EXPECT_FALSE(f.engine->Submit(Request(1, 5)).ok());     // known
  EXPECT_FALSE(f.engine->Submit(Request(2, 1000)).ok());  // never fits
  EXPECT_FALSE(f.engine->Submit(Request(3, 0)).ok());     // invalid
  EXPECT_FALSE(f.engine->Sync(PolicyVersion(0), Weights(0)).ok());
  f.engine->CheckInvariants();
  f.Finish();

  EngineCore fresh(std::make_unique<FakeDecoder>(FakeDecoder::Options{}), std::nullopt, {});
  EXPECT_TRUE(fresh.Submit(Request(1, 5)).ok());
  EXPECT_EQ(fresh.Step().status().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(RolloutOptions{.min_scored = 0}.Validate().ok());
  EXPECT_FALSE(RolloutOptions{.max_scored = 0}.Validate().ok());
  EXPECT_FALSE(RolloutOptions{.max_pass_tokens = 0}.Validate().ok());
}

TEST(EngineCoreTest, AReportCountsItsRows) {
  Fixture f({});
  f.Submit(Request(1, 9, 3));  // a prompt of four
  const StepReport prefix = f.Step();
  EXPECT_EQ(prefix.num_prefill_rows, 3);
  EXPECT_EQ(prefix.num_context_tokens, 1 + 2 + 3);
  EXPECT_EQ(prefix.num_decode_context_tokens, 0);
  EXPECT_TRUE(prefix.sampled.empty());
  const StepReport decode = f.Step();
  EXPECT_EQ(decode.num_decode_rows, 3);
  EXPECT_EQ(decode.num_prefill_rows, 0);
  EXPECT_EQ(decode.num_context_tokens, 3 * 4);
  EXPECT_EQ(decode.num_decode_context_tokens, 3 * 4);
  EXPECT_EQ(decode.sampled.size(), 3u);
  EXPECT_EQ(decode.sampled[2], (MemberId{GroupId(1), 2}));
}

}  // namespace
}  // namespace pace
