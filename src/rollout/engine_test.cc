#include "rollout/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "core/mutex.h"
#include "rollout/fake_decoder.h"

namespace pace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

std::unique_ptr<EngineCore> Core(const RolloutOptions& options = {}, int64_t num_blocks = 400) {
  return std::make_unique<EngineCore>(
      std::make_unique<FakeDecoder>(FakeDecoder::Options{.num_blocks = num_blocks}), std::nullopt,
      options);
}

// An engine and its decoder. What a test does between two passes, it does from
// the decoder's hook: no test depends on how fast threads are.
struct Hooked {
  explicit Hooked(const RolloutOptions& options = {}) {
    auto owned = std::make_unique<FakeDecoder>(FakeDecoder::Options{.num_blocks = 400});
    decoder = owned.get();
    decoder->OnPass([this](int64_t pass) { on_pass(pass); });
    engine = std::make_unique<RolloutEngine>(
        std::make_unique<EngineCore>(std::move(owned), std::nullopt, options));
  }
  // Before the first sync, so before the first pass.
  void OnPass(int64_t number, std::function<void()> hook) {
    on_pass = [number, hook = std::move(hook)](int64_t pass) {
      if (pass == number) hook();
    };
  }

  std::function<void(int64_t)> on_pass = [](int64_t) {};
  FakeDecoder* decoder;
  std::unique_ptr<RolloutEngine> engine;
};

GroupRequest Request(int64_t group, int64_t max_tokens, int64_t num_responses = 1) {
  GroupRequest request;
  request.group = GroupId(group);
  request.prompt = PromptIndex(group);
  request.prompt_tokens = {1, 2, 3, static_cast<TokenId>(group % 13)};
  request.num_responses = num_responses;
  request.stop.max_tokens = max_tokens;
  return request;
}

// What an engine said, in order.
struct Log {
  void Take(RolloutEngine& engine, steady_clock::duration patience = seconds(60)) {
    for (RolloutEvent& event : engine.Wait(steady_clock::now() + patience)) {
      if (const auto* response = std::get_if<FinishedResponse>(&event)) {
        EXPECT_TRUE(finished.emplace(response->id, *response).second) << "finished twice";
      }
      events.push_back(std::move(event));
    }
  }
  void TakeUntilFinished(RolloutEngine& engine, size_t num_responses) {
    const auto deadline = steady_clock::now() + seconds(120);
    while (finished.size() < num_responses && steady_clock::now() < deadline) Take(engine);
    EXPECT_GE(finished.size(), num_responses);
  }
  template <typename Event>
  std::vector<Event> All() const {
    std::vector<Event> all;
    for (const RolloutEvent& event : events) {
      if (const auto* typed = std::get_if<Event>(&event)) all.push_back(*typed);
    }
    return all;
  }

  std::vector<RolloutEvent> events;
  std::map<MemberId, FinishedResponse> finished;
};

// The fake decoder numbers weights as they are prepared, so sync 0, 1, 2, ...
void Sync(RolloutEngine& engine, int64_t version) {
  const Status status = engine.Sync(PolicyVersion(version), WeightSet());
  ASSERT_TRUE(status.ok()) << status.message();
}

// The same tokens from a core without threads, its syncs where the versions say.
std::vector<TokenRecord> Replay(const GroupRequest& request, const FinishedResponse& finished) {
  GroupRequest alone = request;
  alone.members = {finished.id.member};
  std::vector<TokenRecord> tokens;
  for (size_t t = 0; t < finished.response.tokens.size(); ++t) {
    const PolicyVersion version = finished.response.tokens[t].version;
    if (t > 0 && version == tokens.back().version) continue;
    const auto core = Core({.score_prefixes = false});
    const auto number = static_cast<uint64_t>(version.step());
    EXPECT_TRUE(core->Sync(version, std::make_shared<FakeDecoder::Weights>(number)).ok());
    alone.resumed = {PartialResponse{.tokens = tokens}};
    EXPECT_TRUE(core->Submit(alone).ok());
    while (core->busy()) {
      const auto report = core->Step();
      if (!report->finished.empty()) tokens = report->finished[0].response.tokens;
    }
    // Only what this version sampled counts.
    size_t end = t;
    while (end < finished.response.tokens.size() &&
           finished.response.tokens[end].version == version) {
      ++end;
    }
    tokens.resize(end);
    t = end - 1;
  }
  return tokens;
}

TEST(RolloutEngineTest, GeneratesWhatTheCoreGenerates) {
  RolloutEngine engine(Core());
  Sync(engine, 0);
  for (int64_t group = 0; group < 10; ++group) engine.Submit(Request(group, 30, 4));
  Log log;
  log.TakeUntilFinished(engine, 40);
  for (const auto& [id, finished] : log.finished) {
    EXPECT_EQ(finished.response.tokens, Replay(Request(id.group.value(), 30, 4), finished));
  }
  const RolloutStats stats = engine.stats();
  EXPECT_EQ(stats.num_sampled_tokens, 40 * 30);
  EXPECT_GT(stats.num_passes, 30);
  EXPECT_GT(stats.busy_time.count(), 0);
}

TEST(RolloutEngineTest, TellsItsListenerOfEveryEvent) {
  Mutex mutex;
  int64_t heard = 0;
  CondVar spoke;
  RolloutEngine engine(Core(), [&] {
    const MutexLock lock(mutex);
    ++heard;
    spoke.NotifyAll();
  });
  Sync(engine, 0);
  for (int64_t group = 0; group < 10; ++group) engine.Submit(Request(group, 30, 4));
  int64_t taken = 0;
  size_t num_finished = 0;
  while (num_finished < 40) {
    {  // Never waits on the engine itself: a call must come for what is not taken yet.
      const MutexLock lock(mutex);
      while (heard == taken) {
        ASSERT_TRUE(spoke.WaitUntil(mutex, steady_clock::now() + seconds(60)));
      }
      taken = heard;
    }
    for (const RolloutEvent& event : engine.Wait(steady_clock::now())) {
      num_finished += std::holds_alternative<FinishedResponse>(event) ? 1 : 0;
    }
  }
  EXPECT_EQ(num_finished, 40U);
}

TEST(RolloutEngineTest, ASyncInMidResponseIsReportedAndScored) {
  Hooked hooked;
  RolloutEngine& engine = *hooked.engine;
  hooked.OnPass(50, [&engine] { Sync(engine, 1); });
  for (int64_t group = 0; group < 4; ++group) engine.Submit(Request(group, 100, 2));
  Sync(engine, 0);
  Log log;
  log.TakeUntilFinished(engine, 8);
  const auto synced = log.All<WeightsSynced>();
  ASSERT_EQ(synced.size(), 2u);
  EXPECT_EQ(synced[0].version, PolicyVersion(0));
  EXPECT_EQ(synced[1].version, PolicyVersion(1));
  for (const auto& [id, finished] : log.finished) {
    EXPECT_EQ(finished.response.num_interrupts, 1);
    EXPECT_TRUE(finished.response.prefix_score.has_value());
    EXPECT_EQ(finished.response.tokens, Replay(Request(id.group.value(), 100, 2), finished));
  }
  EXPECT_GT(engine.stats().num_reprefill_rows, 0);
  EXPECT_GT(engine.stats().num_scored_rows, 0);
  EXPECT_GT(engine.stats().num_reprefill_rows, 0);
}

TEST(RolloutEngineTest, PausedItStandsStillAndResumedItGoesOn) {
  RolloutEngine engine(Core());
  Sync(engine, 0);
  engine.Submit(Request(1, 1000, 2));
  const std::vector<GroupRequest> unfinished = engine.Pause();
  const int64_t num_passes = engine.stats().num_passes;
  engine.Submit(Request(2, 3));  // is taken in, but does not run
  EXPECT_EQ(engine.Pause().size(), unfinished.size() + 1);
  EXPECT_EQ(engine.stats().num_passes, num_passes);
  engine.Resume();
  Log log;
  log.TakeUntilFinished(engine, 3);
}

TEST(RolloutEngineTest, WhatStopHandsOutGoesOnInAnotherEngine) {
  Log log;
  std::vector<GroupRequest> unfinished;
  {
    RolloutEngine engine(Core());
    Sync(engine, 0);
    for (int64_t group = 0; group < 20; ++group) engine.Submit(Request(group, 20 + 10 * group, 3));
    log.TakeUntilFinished(engine, 3);
    unfinished = engine.Stop();
    log.Take(engine, milliseconds(0));
    EXPECT_TRUE(engine.Stop().empty());
    EXPECT_TRUE(engine.Pause().empty());
    engine.Submit(Request(99, 1));
    EXPECT_EQ(engine.Sync(PolicyVersion(5), WeightSet()).code(), StatusCode::kUnavailable);
    EXPECT_TRUE(engine.Wait(steady_clock::now() + seconds(60)).empty());  // at once
  }
  RolloutEngine second(Core());
  Sync(second, 0);
  for (GroupRequest& request : unfinished) second.Submit(std::move(request));
  log.TakeUntilFinished(second, 60);
  for (const auto& [id, finished] : log.finished) {
    const int64_t group = id.group.value();
    EXPECT_EQ(finished.response.tokens, Replay(Request(group, 20 + 10 * group, 3), finished));
  }
}

TEST(RolloutEngineTest, ACancelledGroupComesBackAsItWas) {
  Hooked hooked;
  RolloutEngine& engine = *hooked.engine;
  hooked.OnPass(10, [&engine] { engine.Cancel(GroupId(1)); });
  engine.Submit(Request(1, 50));
  engine.Submit(Request(2, 30));
  engine.Cancel(GroupId(7));  // unknown: nothing
  Sync(engine, 0);
  Log log;
  log.TakeUntilFinished(engine, 1);
  const auto cancelled = log.All<GroupCancelled>();
  ASSERT_EQ(cancelled.size(), 1u);
  EXPECT_EQ(cancelled[0].request.group, GroupId(1));
  EXPECT_EQ(cancelled[0].request.resumed.at(0).tokens.size(), 11u);
}

TEST(RolloutEngineTest, AGroupThatIsTakenComesBackAtOnce) {
  RolloutEngine engine(Core());
  EXPECT_FALSE(engine.Take(GroupId(7)).has_value());
  engine.Submit(Request(1, 50, 2));
  const std::optional<GroupRequest> taken = engine.Take(GroupId(1));
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->group, GroupId(1));
  EXPECT_EQ(taken->num_members(), 2);
  EXPECT_FALSE(engine.Take(GroupId(1)).has_value());
  EXPECT_TRUE(engine.Wait(steady_clock::now()).empty());
}

TEST(RolloutEngineTest, AResponseThatRestsReadsOnOrEnds) {
  RolloutEngine engine(Core());
  GroupRequest request = Request(1, 300, 2);
  request.stop.stop_tokens = {5};
  request.stop.pauses = true;
  Sync(engine, 0);
  engine.Submit(request);
  Log log;
  std::map<MemberId, int64_t> replies;
  size_t heard = 0;
  const auto deadline = steady_clock::now() + seconds(60);
  while (log.finished.size() < 2 && steady_clock::now() < deadline) {
    log.Take(engine);
    for (; heard < log.events.size(); ++heard) {
      const auto* paused = std::get_if<ResponsePaused>(&log.events[heard]);
      if (paused == nullptr) continue;
      EXPECT_EQ(paused->response.tokens.back().id, 5);
      if (++replies[paused->id] <= 2) {
        engine.Continue(paused->id, {7, 8, 9});
      } else {
        engine.FinishPaused(paused->id);
      }
    }
  }
  ASSERT_EQ(log.finished.size(), 2U);
  for (const auto& [id, finished] : log.finished) {
    const auto given =
        std::count_if(finished.response.tokens.begin(), finished.response.tokens.end(),
                      [](const TokenRecord& token) { return token.is_tool; });
    EXPECT_EQ(given, 3 * std::min<int64_t>(replies[id], 2));
  }
  // What does not rest is left alone.
  engine.Continue({GroupId(9), 0}, {1});
  engine.FinishPaused({GroupId(1), 0});
  EXPECT_TRUE(engine.Wait(steady_clock::now() + milliseconds(20)).empty());
}

TEST(RolloutEngineTest, ARefusedRequestSaysWhy) {
  RolloutEngine engine(Core());
  engine.Submit(Request(1, 0));
  Log log;
  log.Take(engine);
  const auto refused = log.All<GroupRefused>();
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].group, GroupId(1));
  EXPECT_NE(refused[0].error.message().find("max_tokens"), std::string::npos);
}

TEST(RolloutEngineTest, OlderVersionsAreRefused) {
  RolloutEngine engine(Core());
  Sync(engine, 3);
  EXPECT_EQ(engine.Sync(PolicyVersion(3), WeightSet()).code(), StatusCode::kInvalidArgument);
}

TEST(RolloutEngineTest, ADrainedSyncIsReportedWhenItTookEffect) {
  Hooked hooked({.sync_mode = SyncMode::kDrain});
  RolloutEngine& engine = *hooked.engine;
  hooked.OnPass(3, [&engine] {
    Sync(engine, 1);
    engine.Submit(Request(2, 5));
  });
  engine.Submit(Request(1, 50));
  Sync(engine, 0);
  Log log;
  log.TakeUntilFinished(engine, 2);
  const MemberId first{GroupId(1), 0}, second{GroupId(2), 0};
  EXPECT_EQ(log.finished.at(first).response.tokens.back().version, PolicyVersion(0));
  EXPECT_EQ(log.finished.at(second).response.tokens.front().version, PolicyVersion(1));
  // Finished, then synced, then finished.
  ASSERT_EQ(log.events.size(), 4u);
  EXPECT_EQ(std::get<FinishedResponse>(log.events[1]).id, first);
  EXPECT_EQ(std::get<WeightsSynced>(log.events[2]).version, PolicyVersion(1));
}

TEST(RolloutEngineTest, AFailedDevicePausesTheEngineAndLosesNothing) {
  Hooked hooked;
  RolloutEngine& engine = *hooked.engine;
  hooked.OnPass(5, [&hooked] { hooked.decoder->FailNext(); });
  Sync(engine, 0);
  engine.Submit(Request(1, 20));
  Log log;
  while (log.All<DeviceFailed>().empty()) log.Take(engine);
  EXPECT_TRUE(log.finished.empty());
  engine.Resume();
  log.TakeUntilFinished(engine, 1);
  EXPECT_EQ(log.finished.begin()->second.response.tokens,
            Replay(Request(1, 20), log.finished.begin()->second));
}

TEST(RolloutEngineTest, WaitKeepsItsDeadline) {
  RolloutEngine engine(Core());
  EXPECT_TRUE(engine.Wait(steady_clock::now() + milliseconds(5)).empty());
}

// Two engines in one process, callers on many threads, the end at any moment.
TEST(RolloutEngineTest, DestroyedAtAnyMomentItEndsCleanly) {
  for (unsigned round = 0; round < 40; ++round) {
    std::mt19937 bits(round);
    RolloutEngine first(Core({.min_scored = 4, .max_pass_tokens = 64}, 60));
    RolloutEngine second(Core({.sync_mode = SyncMode::kDrain, .max_pass_tokens = 32}, 60));
    std::atomic<bool> over{false};
    std::vector<std::thread> callers;
    for (RolloutEngine* engine : {&first, &second}) {
      callers.emplace_back([engine, &over] {
        for (int64_t version = 0; !over; ++version) {
          if (!engine->Sync(PolicyVersion(version), WeightSet()).ok()) return;
          std::this_thread::sleep_for(milliseconds(1));
        }
      });
      callers.emplace_back([engine, &over] {
        for (int64_t group = 0; !over; ++group) {
          engine->Submit(Request(group, 1 + group % 40, 1 + group % 3));
          if (group % 7 == 0) engine->Cancel(GroupId(group / 2));
          if (group % 50 == 0) std::this_thread::sleep_for(milliseconds(1));
        }
      });
      callers.emplace_back([engine, &over] {
        while (!over) {
          engine->Wait(steady_clock::now() + milliseconds(1));
          engine->stats();
        }
      });
      callers.emplace_back([engine, &over] {
        while (!over) {
          engine->Pause();
          engine->Resume();
          std::this_thread::sleep_for(milliseconds(1));
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(bits() % 20000));
    if (round % 3 == 0) first.Stop();
    over = true;
    for (std::thread& caller : callers) caller.join();
  }
}

TEST(RolloutEngineTest, StoppedFromSeveralThreadsAtOnceNothingIsHandedOutTwice) {
  for (int round = 0; round < 50; ++round) {
    RolloutEngine engine(Core());
    engine.Submit(Request(1, 3000));  // never runs: there are no weights
    std::atomic<int64_t> num_handed_out{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&] { num_handed_out += static_cast<int64_t>(engine.Stop().size()); });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(num_handed_out, 1);
  }
}

TEST(RolloutEngineTest, AnObserverSeesEveryTokenButTheLastOfEachResponse) {
  std::map<MemberId, std::vector<TokenRecord>> seen;
  int64_t num_sampled = 0;
  RolloutEngine engine(Core(), {}, [&](const EngineCore& core, const StepReport& report) {
    for (const MemberId id : report.sampled) {
      ++num_sampled;
      const PartialResponse* const response = core.Peek(id);
      if (response != nullptr) seen[id].push_back(response->tokens.back());
    }
  });
  Sync(engine, 0);
  engine.Submit(Request(1, 20));
  engine.Submit(Request(2, 7, 3));
  Log log;
  log.TakeUntilFinished(engine, 4);
  engine.Stop();
  EXPECT_EQ(num_sampled, 20 + 3 * 7);
  for (auto& [id, finished] : log.finished) {
    std::vector<TokenRecord> tokens = finished.response.tokens;
    tokens.pop_back();
    EXPECT_EQ(seen[id], tokens);
  }
}

TEST(RolloutEngineTest, EveryRequestHasItsFirstTokenOnceAndSyncsAreCounted) {
  RolloutEngine engine(Core());
  ASSERT_TRUE(engine.Sync(PolicyVersion(0), WeightSet()).ok());
  engine.Submit(Request(1, 5, 3));
  engine.Submit(Request(2, 5));
  Log log;
  log.TakeUntilFinished(engine, 4);
  ASSERT_TRUE(engine.Sync(PolicyVersion(1), WeightSet()).ok());
  engine.Submit(Request(3, 1));
  log.TakeUntilFinished(engine, 5);
  engine.Stop();
  const RolloutStats stats = engine.stats();
  EXPECT_EQ(stats.num_first_tokens, 5);
  EXPECT_GT(stats.first_token_time.count(), 0);
  EXPECT_EQ(stats.num_syncs, 2);
  EXPECT_EQ(stats.num_failures, 0);
}

}  // namespace
}  // namespace pace
