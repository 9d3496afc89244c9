#include "serve/engine_host.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <chrono>
#include <future>
#include <thread>

#include "core/test_files.h"
#include "serve/test_host.h"

namespace pace {
namespace {

class EngineHostTest : public ::testing::Test {
 protected:
  void Start(const EngineHostOptions& options = {}, int64_t max_pass_tokens = 64) {
    Result<std::unique_ptr<EngineHost>> host =
        EngineHost::Start(HostCore(gate_, max_pass_tokens), HostWeights(1), options);
    ASSERT_TRUE(host.ok()) << host.status().message();
    host_ = std::move(host).value();
  }
  ~EngineHostTest() override { gate_.AllowAll(); }

  static GroupRequest Request(int64_t max_tokens, std::vector<TokenId> prompt = {3, 1, 4, 1, 5}) {
    GroupRequest request;
    request.seed = 7;
    request.prompt_tokens = std::move(prompt);
    request.stop.max_tokens = max_tokens;
    return request;
  }
  std::future<Result<Generation>> Begin(const GroupRequest& request, const std::string& id = "a",
                                        Cancellation cancellation = {}) {
    return std::async(std::launch::async, [this, request, id, cancellation] {
      return host_->Generate(id, request, {}, cancellation);
    });
  }
  Generation Generate(const GroupRequest& request) {
    Result<Generation> generation = host_->Generate("", request, {}, {});
    EXPECT_TRUE(generation.ok()) << generation.status().message();
    return generation.ok() ? *generation : Generation();
  }
  // The same response from a host of its own, under these weights.
  static Generation Alone(const GroupRequest& request, uint64_t weights) {
    PassGate gate;
    gate.AllowAll();
    Result<std::unique_ptr<EngineHost>> host =
        EngineHost::Start(HostCore(gate), HostWeights(weights), {});
    EXPECT_TRUE(host.ok());
    Result<Generation> generation = (*host)->Generate("", request, {}, {});
    EXPECT_TRUE(generation.ok()) << generation.status().message();
    return *generation;
  }
  static std::vector<TokenId> Ids(const Generation& generation) {
    std::vector<TokenId> ids;
    for (const TokenRecord& token : generation.tokens) ids.push_back(token.id);
    return ids;
  }
  static std::vector<float> Logprobs(const Generation& generation) {
    std::vector<float> logprobs;
    for (const TokenRecord& token : generation.tokens) logprobs.push_back(token.logprob);
    return logprobs;
  }
  // The prompt with the first tokens of a response.
  static std::vector<TokenId> Extended(const GroupRequest& request, const Generation& generation,
                                       size_t count) {
    std::vector<TokenId> tokens = request.prompt_tokens;
    for (size_t i = 0; i < count; ++i) tokens.push_back(generation.tokens[i].id);
    return tokens;
  }
  std::string Weights(uint64_t seed) {
    return SaveWeights((ScratchFolder() / std::to_string(seed)).string(), seed);
  }
  // Pauses an engine whose next pass waits at the gate: this pass still runs.
  void PauseBetweenPasses(PauseMode mode, bool clear_cache) {
    auto paused = std::async(std::launch::async, [&] { host_->Pause(mode, clear_cache, {}); });
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      gate_.Allow(1);
    } while (paused.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready);
  }
  void WaitForRequests(int64_t count) const {
    while (host_->stats().num_running + host_->stats().num_waiting < count) {
      std::this_thread::yield();
    }
  }
  // Six tokens, then other weights as the pause's mode says, then the rest.
  Generation AcrossAnUpdate(bool clear_cache) {
    const std::string folder = Weights(2);
    auto pending = Begin(Request(20));
    gate_.Allow(6);
    gate_.WaitForPasses(6);
    PauseBetweenPasses(PauseMode::kKeep, clear_cache);
    EXPECT_TRUE(host_->paused());
    EXPECT_TRUE(host_->LoadWeights(folder).ok());
    EXPECT_TRUE(host_->SetLabel("v2").ok());
    host_->Resume();
    gate_.AllowAll();
    Result<Generation> generation = pending.get();
    EXPECT_TRUE(generation.ok()) << generation.status().message();
    return generation.ok() ? *generation : Generation();
  }

  PassGate gate_;
  std::unique_ptr<EngineHost> host_;
};

TEST_F(EngineHostTest, AResponseHasItsTokensAndItsEnd) {
  Start();
  gate_.AllowAll();
  const Generation generation = Generate(Request(12));
  EXPECT_EQ(generation.tokens.size(), 12U);
  EXPECT_EQ(generation.reason, FinishReason::kMaxTokens);
  EXPECT_EQ(generation.weight_versions, (std::vector<WeightSpan>{{"default", 0, 12}}));
  EXPECT_TRUE(generation.prompt_logprobs.empty());
}

TEST_F(EngineHostTest, BitsDoNotDependOnOtherClients) {
  Start({}, /*max_pass_tokens=*/16);
  gate_.AllowAll();
  std::vector<std::future<Result<Generation>>> others;
  for (int i = 0; i < 24; ++i) {
    others.push_back(Begin(Request(30 + i, std::vector<TokenId>(size_t(3 + i), TokenId(i)))));
  }
  const Generation crowd = Generate(Request(40));
  for (auto& other : others) EXPECT_TRUE(other.get().ok());
  const Generation alone = Alone(Request(40), 1);
  EXPECT_EQ(Ids(crowd), Ids(alone));
  EXPECT_EQ(Logprobs(crowd), Logprobs(alone));
}

TEST_F(EngineHostTest, AnotherSeedGivesAnotherResponse) {
  Start();
  gate_.AllowAll();
  GroupRequest other = Request(40);
  other.seed = 8;
  EXPECT_EQ(Ids(Generate(Request(40))), Ids(Generate(Request(40))));
  EXPECT_NE(Ids(Generate(Request(40))), Ids(Generate(other)));
}

TEST_F(EngineHostTest, AStreamHandsOverEveryTokenInOrder) {
  Start();
  gate_.AllowAll();
  std::vector<TokenId> streamed;
  const Result<Generation> generation = host_->Generate("", Request(40),
                                                        [&](std::span<const TokenRecord> tokens) {
                                                          for (const TokenRecord& token : tokens)
                                                            streamed.push_back(token.id);
                                                          return true;
                                                        },
                                                        {});
  ASSERT_TRUE(generation.ok());
  const std::vector<TokenId> ids = Ids(*generation);
  // The last comes with the result.
  ASSERT_LE(streamed.size(), ids.size());
  EXPECT_EQ(streamed, std::vector<TokenId>(ids.begin(), ids.begin() + std::ssize(streamed)));
}

TEST_F(EngineHostTest, TokensAreStreamedAsTheyCome) {
  Start();
  std::promise<void> third;
  auto pending = std::async(std::launch::async, [&] {
    size_t count = 0;
    return host_->Generate("", Request(5),
                           [&](std::span<const TokenRecord> tokens) {
                             if (count < 3 && count + tokens.size() >= 3) third.set_value();
                             count += tokens.size();
                             return true;
                           },
                           {});
  });
  gate_.Allow(3);
  third.get_future().get();
  gate_.AllowAll();
  EXPECT_TRUE(pending.get().ok());
}

TEST_F(EngineHostTest, AKeptResponseWithoutItsCacheContinuesAsANewRequestWould) {
  Start();
  const Generation generation = AcrossAnUpdate(/*clear_cache=*/true);
  ASSERT_EQ(generation.weight_versions.size(), 2U);
  const int64_t cut = generation.weight_versions[0].end;
  EXPECT_EQ(generation.weight_versions,
            (std::vector<WeightSpan>{{"default", 0, cut}, {"v2", cut, 20}}));
  EXPECT_GE(cut, 7);
  // The first part is of the old weights; the rest has the log-probabilities that the new weights
  // give these tokens after the whole prefix.
  const Generation old = Alone(Request(20), 1);
  for (int64_t i = 0; i < cut; ++i) {
    EXPECT_EQ(generation.tokens[static_cast<size_t>(i)].logprob,
              old.tokens[static_cast<size_t>(i)].logprob);
  }
  GroupRequest scored = Request(1, Extended(Request(20), generation, 20));
  scored.score_prompt = true;
  const Generation scores = Alone(scored, 2);
  ASSERT_EQ(scores.prompt_logprobs.size(), 24U);
  for (size_t i = static_cast<size_t>(cut); i < 20; ++i) {
    EXPECT_EQ(scores.prompt_logprobs[4 + i], generation.tokens[i].logprob) << i;
  }
}

TEST_F(EngineHostTest, AKeptResponseWithItsCacheContinuesOnOldValues) {
  Start();
  const Generation generation = AcrossAnUpdate(/*clear_cache=*/false);
  ASSERT_EQ(generation.weight_versions.size(), 2U);
  GroupRequest scored = Request(1, Extended(Request(20), generation, 20));
  scored.score_prompt = true;
  const Generation scores = Alone(scored, 2);
  const auto cut = static_cast<size_t>(generation.weight_versions[0].end);
  EXPECT_NE(scores.prompt_logprobs[4 + cut], generation.tokens[cut].logprob);
}

TEST_F(EngineHostTest, AnAbortedRequestHasItsTokensAndCanBeContinued) {
  Start();
  auto pending = Begin(Request(30), "b");
  auto other = Begin(Request(9), "c");
  WaitForRequests(2);
  gate_.Allow(5);
  gate_.WaitForPasses(5);
  EXPECT_EQ(host_->Abort(std::vector<std::string>{"b", "nobody"}), 1);
  gate_.AllowAll();
  const Result<Generation> generation = pending.get();
  ASSERT_TRUE(generation.ok());
  EXPECT_FALSE(generation->reason.has_value());
  EXPECT_GE(generation->tokens.size(), 4U);
  EXPECT_LT(generation->tokens.size(), 30U);
  const auto count = static_cast<int64_t>(generation->tokens.size());
  EXPECT_EQ(generation->weight_versions, (std::vector<WeightSpan>{{"default", 0, count}}));
  EXPECT_EQ(other.get()->tokens.size(), 9U) << "the others are not touched";
  // Scored and continued under the same weights: the recorded log-probabilities, to the bit.
  GroupRequest resumed = Request(30 - count, Extended(Request(30), *generation, size_t(count)));
  resumed.score_prompt = true;
  const Generation rest = Generate(resumed);
  ASSERT_EQ(rest.prompt_logprobs.size(), static_cast<size_t>(4 + count));
  EXPECT_EQ(std::vector<float>(rest.prompt_logprobs.begin() + 4, rest.prompt_logprobs.end()),
            Logprobs(*generation));
  EXPECT_EQ(static_cast<int64_t>(rest.tokens.size()), 30 - count);
}

TEST_F(EngineHostTest, PromptScoresOfLongPromptsDoNotDependOnTheSizeOfPasses) {
  std::vector<TokenId> prompt;
  for (TokenId i = 0; i < 150; ++i) prompt.push_back((i * 7) % 26);
  GroupRequest request = Request(3, prompt);
  request.score_prompt = true;
  Start({}, /*max_pass_tokens=*/8);
  gate_.AllowAll();
  std::vector<std::future<Result<Generation>>> others;
  for (int i = 0; i < 5; ++i) others.push_back(Begin(Request(60)));
  const Generation small = Generate(request);
  for (auto& other : others) EXPECT_TRUE(other.get().ok());
  const Generation large = Alone(request, 1);
  EXPECT_EQ(small.prompt_logprobs.size(), 149U);
  EXPECT_EQ(small.prompt_logprobs, large.prompt_logprobs);
  EXPECT_EQ(Ids(small), Ids(large));
}

TEST_F(EngineHostTest, APromptThatIsReadDuringAnUpdateIsScoredUnderTheNewWeights) {
  std::vector<TokenId> prompt;
  for (TokenId i = 0; i < 60; ++i) prompt.push_back((i * 5) % 26);
  GroupRequest request = Request(3, prompt);
  request.score_prompt = true;
  const std::string folder = Weights(2);
  Start({}, /*max_pass_tokens=*/8);
  auto pending = Begin(request);
  gate_.Allow(3);
  gate_.WaitForPasses(3);
  PauseBetweenPasses(PauseMode::kKeep, true);
  EXPECT_TRUE(host_->LoadWeights(folder).ok());
  host_->Resume();
  gate_.AllowAll();
  const Result<Generation> generation = pending.get();
  ASSERT_TRUE(generation.ok());
  const Generation fresh = Alone(request, 2);
  EXPECT_EQ(generation->prompt_logprobs, fresh.prompt_logprobs);
  EXPECT_EQ(Ids(*generation), Ids(fresh));
}

TEST_F(EngineHostTest, PauseWithAbortEndsWhatRunsAndHoldsWhatComes) {
  Start();
  auto pending = Begin(Request(30));
  gate_.Allow(3);
  gate_.WaitForPasses(3);
  PauseBetweenPasses(PauseMode::kAbort, true);
  const Result<Generation> aborted = pending.get();
  ASSERT_TRUE(aborted.ok());
  EXPECT_FALSE(aborted->reason.has_value());
  EXPECT_TRUE(host_->paused());
  auto late = Begin(Request(4), "late");
  EXPECT_EQ(late.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_EQ(host_->stats().num_waiting, 1);
  host_->Resume();
  gate_.AllowAll();
  EXPECT_EQ(late.get()->tokens.size(), 4U);
  EXPECT_FALSE(host_->paused());
}

TEST_F(EngineHostTest, PauseWithWaitLetsWhatRunsFinish) {
  Start();
  auto pending = Begin(Request(8));
  gate_.Allow(3);
  gate_.WaitForPasses(3);
  auto paused = std::async(std::launch::async, [&] { host_->Pause(PauseMode::kWait, true, {}); });
  while (!host_->paused()) std::this_thread::yield();
  auto late = Begin(Request(4));
  EXPECT_EQ(paused.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  gate_.AllowAll();
  paused.get();
  EXPECT_EQ(pending.get()->tokens.size(), 8U);
  EXPECT_EQ(late.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  host_->Resume();
  EXPECT_EQ(late.get()->tokens.size(), 4U);
}

TEST_F(EngineHostTest, AResumeEndsAPauseThatWaits) {
  Start();
  auto pending = Begin(Request(8));
  gate_.Allow(1);
  gate_.WaitForPasses(1);
  auto paused = std::async(std::launch::async, [&] { host_->Pause(PauseMode::kWait, true, {}); });
  while (!host_->paused()) std::this_thread::yield();
  host_->Resume();
  paused.get();
  gate_.AllowAll();
  EXPECT_EQ(pending.get()->tokens.size(), 8U);
}

TEST_F(EngineHostTest, AbortReachesRequestsThatWaitForTheResume) {
  Start();
  gate_.AllowAll();
  host_->Pause(PauseMode::kKeep, false, {});
  auto held = Begin(Request(4), "held");
  WaitForRequests(1);
  EXPECT_EQ(host_->AbortAll(), 1);
  const Result<Generation> generation = held.get();
  ASSERT_TRUE(generation.ok());
  EXPECT_FALSE(generation->reason.has_value());
  EXPECT_TRUE(generation->tokens.empty());
  EXPECT_TRUE(generation->weight_versions.empty());
}

TEST_F(EngineHostTest, AClientThatLeavesFreesItsPlace) {
  Start({.max_requests = 1});
  const FileDescriptor gone(::eventfd(0, EFD_CLOEXEC));
  auto pending = Begin(Request(100), "a", {.descriptor = gone.get(), .events = POLLIN});
  gate_.Allow(2);
  gate_.WaitForPasses(2);
  EXPECT_EQ(host_->Generate("", Request(4), {}, {}).status().code(), StatusCode::kUnavailable);
  ::eventfd_write(gone.get(), 1);
  EXPECT_EQ(pending.get().status().code(), StatusCode::kUnavailable);
  gate_.AllowAll();
  EXPECT_EQ(Generate(Request(4)).tokens.size(), 4U);
}

TEST_F(EngineHostTest, WeightsThatAreWrongChangeNothing) {
  Start();
  gate_.AllowAll();
  EXPECT_FALSE(host_->LoadWeights((ScratchFolder() / "none").string()).ok());
  EXPECT_EQ(Ids(Generate(Request(20))), Ids(Alone(Request(20), 1)));
  EXPECT_TRUE(host_->LoadWeights(Weights(2)).ok());
  EXPECT_EQ(Ids(Generate(Request(20))), Ids(Alone(Request(20), 2)));
  EXPECT_EQ(host_->stats().num_weight_loads, 1);
}

TEST_F(EngineHostTest, TheLabelIsTheClientsAndStaysOverALoad) {
  Start();
  gate_.AllowAll();
  EXPECT_EQ(host_->label(), "default");
  EXPECT_TRUE(host_->SetLabel("run:7").ok());
  EXPECT_EQ(host_->label(), "run:7");
  EXPECT_TRUE(host_->LoadWeights(Weights(2)).ok());
  EXPECT_EQ(host_->label(), "run:7");
  EXPECT_EQ(Generate(Request(3)).weight_versions, (std::vector<WeightSpan>{{"run:7", 0, 3}}));
  EXPECT_FALSE(host_->SetLabel(std::string(5000, 'x')).ok());
}

TEST_F(EngineHostTest, ARequestThatTheEngineRefusesIsAnError) {
  Start();
  gate_.AllowAll();
  GroupRequest request = Request(3);
  request.prompt_tokens = {99};
  EXPECT_EQ(host_->Generate("", request, {}, {}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pace
