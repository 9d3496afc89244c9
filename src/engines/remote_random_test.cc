// Random runs of RemoteCore against a server that is honest, or is not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "engines/remote_world.h"

namespace pace {
namespace {

// PACE_REMOTE_EVENTS=1000000 makes them longer.
int64_t NumEvents() {
  const char* const text = std::getenv("PACE_REMOTE_EVENTS");
  return text == nullptr ? 100000 : std::atoll(text);
}

// The score that the last sync before a token gave: of the tokens before it, under its version.
std::optional<double> ScoreOf(const GroupRequest& request, const PartialResponse& response,
                              const RolloutOptions& options) {
  std::optional<double> score;
  for (size_t m = 1; m < response.tokens.size(); ++m) {
    if (response.tokens[m].version == response.tokens[m - 1].version) continue;
    if (static_cast<int64_t>(m) < options.min_scored) continue;
    const std::string label = Concat("run:", response.tokens[m].version.step());
    const size_t count = std::min(m, static_cast<size_t>(options.max_scored));
    double sum = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto at = static_cast<int64_t>(request.prompt_tokens.size() + i);
      const float now = FakeServer::LogprobOf(label, at, response.tokens[i].id);
      sum += std::abs(static_cast<double>(now) - static_cast<double>(response.tokens[i].logprob));
    }
    score = sum / static_cast<double>(count);
  }
  return score;
}

FakeServer::Kind KindOf(uint64_t seed) {
  return seed / 4 % 2 == 0 ? FakeServer::Kind::kVllm : FakeServer::Kind::kSglang;
}

class RandomRun {
 public:
  RandomRun(const RemoteOptions& options, uint64_t seed, double lies)
      : options_(options), random_(seed), world_(options, KindOf(seed)), lies_(lies) {
    if (lies > 0) {
      world_.server.lie = [this](ServerAnswer& answer) {
        if (Chance(lies_)) Lie(answer);
      };
    }
    if (seed % 3 == 0) world_.server.fetches = static_cast<int64_t>(seed % 5);
    // As a run before this one may have left it.
    world_.server.session_open = options.weights == WeightPath::kChannel && seed % 3 == 1;
    world_.core.Join();
    world_.Collect();
  }

  // Until the worker is gone or this many events have happened; returns how many did.
  int64_t Run(int64_t num_events) {
    for (int64_t i = 0; i < num_events; ++i) {
      Act();
      world_.Collect();
      Read();
      world_.core.CheckInvariants();
      if (gone_) return i + 1;
    }
    return num_events;
  }

  // Whatever was asked for comes to an end.
  void End() {
    if (gone_) return;
    world_.core.Release();
    for (int i = 0; i < 2000 && !groups_.empty(); ++i) {
      world_.core.LookAfter();
      if (std::exchange(world_.asks_pause, false)) world_.core.AllowPause();
      world_.Settle();
      world_.StepServer();
      world_.Settle();
      Read();
      if (gone_) return;
    }
    EXPECT_TRUE(groups_.empty()) << groups_.size() << " groups never ended, the first is "
                                 << groups_.begin()->first.value() << ": "
                                 << groups_.begin()->second.unfinished << " unfinished, cancelled "
                                 << groups_.begin()->second.cancelled << ", in the core "
                                 << world_.core.Has(groups_.begin()->first) << ", in the server "
                                 << world_.server.num_running() << ", pauses "
                                 << groups_.begin()->second.request.stop.pauses;
  }

  int64_t num_finished = 0;
  int64_t num_scored = 0;
  int64_t num_bound = 0;
  bool gone() const { return gone_; }
  int64_t num_buckets() const { return world_.server.num_buckets; }

 private:
  int64_t Below(int64_t bound) {
    return std::uniform_int_distribution<int64_t>(0, bound - 1)(random_);
  }
  bool Chance(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }

  void Act() {
    const int64_t kind = Below(100);
    if (kind < 30 && !world_.calls.empty()) {
      world_.DeliverCall(static_cast<size_t>(Below(std::ssize(world_.calls))));
    } else if (kind < 60 && !world_.answers.empty()) {
      const auto index = static_cast<size_t>(Below(std::ssize(world_.answers)));
      // Rarely, so that the worker lives for a while: answers to control calls, duplicate answers,
      // answers to calls that were never made, broken connections.
      if (Chance(lies_ / 50)) Lie(world_.answers[index].answer);
      if (Chance(lies_ / 10)) world_.answers.push_back(world_.answers[index]);
      if (Chance(lies_ / 10)) world_.core.Answered(Below(1 << 20), {200, "{}"});
      if (Chance(lies_ / 100)) {
        world_.core.Failed(world_.answers[index].call, Unavailable("the connection broke"));
      } else {
        world_.DeliverAnswer(index);
      }
    } else if (kind < 75) {
      world_.StepServer();
    } else if (kind < 85) {
      if (world_.asks_pause && Chance(0.5)) {
        world_.asks_pause = false;
        world_.core.AllowPause();
      } else if (!world_.met.empty()) {
        const bool fails = Chance(lies_ / 10);
        world_.SayMet(fails ? Unavailable("not done after 120 s") : Status::Ok());
      } else if (!world_.Meet()) {
        world_.StepServer();
      }
    } else if (kind < 90) {
      if (groups_.size() > 12) return;
      GroupRequest request = WorldRequest(next_group_++, 1 + Below(3), 5 + Below(60));
      request.stop.pauses = Chance(0.2);
      if (version_ >= 0 && Chance(0.15)) request.only_version = PolicyVersion(version_);
      groups_.emplace(request.group, Expected{request, request.num_responses});
      world_.core.Submit(request);
    } else if (kind < 92 && !groups_.empty()) {
      auto at = groups_.begin();
      std::advance(at, Below(std::ssize(groups_)));
      at->second.cancelled = true;
      world_.core.Cancel(at->first);
    } else if (kind < 95) {
      ++version_;
      EXPECT_TRUE(world_.core.Sync(WorldWeights(version_)).ok());
    } else if (kind < 96) {
      world_.core.Hold();
    } else if (kind < 98) {
      world_.core.Release();
    } else {
      world_.core.LookAfter();
    }
  }

  void Lie(ServerAnswer& answer) {
    switch (Below(6)) {
      case 0:
        answer.status = 500;
        break;
      case 1:
        answer.status = 400;
        break;
      case 2:
        answer.body.resize(static_cast<size_t>(Below(std::ssize(answer.body) + 1)));
        break;
      case 3:
        answer.body = "null";
        break;
      default:
        for (int i = 0; i < 3; ++i) {
          if (answer.body.empty()) break;
          const auto at = static_cast<size_t>(Below(std::ssize(answer.body)));
          answer.body[at] = static_cast<char>(' ' + Below(95));
        }
    }
  }

  void Read() {
    while (!world_.events.empty()) {
      const RolloutEvent event = std::move(world_.events.front());
      world_.events.pop_front();
      ASSERT_FALSE(gone_) << "an event after the worker was gone";
      std::visit([this](const auto& typed) { On(typed); }, event);
    }
  }

  void On(const FinishedResponse& done) {
    const auto found = groups_.find(done.id.group);
    ASSERT_NE(found, groups_.end());
    const PartialResponse& response = done.response;
    ASSERT_FALSE(response.tokens.empty());
    PolicyVersion last(0);
    for (const TokenRecord& token : response.tokens) {
      EXPECT_LT(token.id, FakeServer::kVocabulary);
      EXPECT_GE(token.version, last);
      last = token.version;
    }
    EXPECT_LE(last, synced_);
    EXPECT_LE(std::ssize(response.tokens), found->second.request.stop.max_tokens);
    if (found->second.request.only_version.has_value()) {
      EXPECT_EQ(response.tokens.front().version, *found->second.request.only_version);
      EXPECT_EQ(response.tokens.back().version, *found->second.request.only_version);
      ++num_bound;
    }
    if (lies_ == 0) {
      EXPECT_TRUE(IsTrue(found->second.request, response));
      const bool has_tools = found->second.request.stop.pauses;
      if (options_.rollout.score_prefixes && !has_tools) {
        const std::optional<double> expected =
            ScoreOf(found->second.request, response, options_.rollout);
        ASSERT_EQ(response.prefix_score.has_value(), expected.has_value());
        EXPECT_DOUBLE_EQ(response.prefix_score.value_or(0), expected.value_or(0));
        num_scored += expected.has_value() ? 1 : 0;
      }
    }
    ++num_finished;
    Count(found);
  }
  void On(const ResponsePaused& paused) {
    if (Chance(0.5)) {
      world_.core.FinishPaused(paused.id);
    } else {
      const std::vector<TokenId> tokens(static_cast<size_t>(1 + Below(4)), 3);
      world_.core.Continue(paused.id, tokens);
    }
    world_.Collect();
  }
  void On(const WeightsSynced& synced) {
    EXPECT_GT(synced.version.step(), synced_set_ ? synced_.step() : -1);
    synced_ = synced.version;
    synced_set_ = true;
  }
  void On(const GroupCancelled& cancelled) {
    const auto found = groups_.find(cancelled.request.group);
    ASSERT_NE(found, groups_.end());
    EXPECT_TRUE(found->second.cancelled);
    EXPECT_EQ(std::ssize(cancelled.request.members), found->second.unfinished);
    groups_.erase(found);
  }
  void On(const GroupRefused& refused) {
    // A sync that replaced another one took the version away.
    const auto found = groups_.find(refused.group);
    ASSERT_NE(found, groups_.end());
    EXPECT_TRUE(lies_ > 0 || found->second.request.only_version.has_value());
    EXPECT_EQ(groups_.erase(refused.group), 1U);
  }
  void On(const WorkerGone& gone) {
    EXPECT_GT(lies_, 0) << gone.error.message();
    gone_ = true;
  }
  void On(const WorkerReady&) {}
  void On(const DeviceFailed&) { ADD_FAILURE() << "a remote worker has no device"; }

  struct Expected {
    GroupRequest request;
    int64_t unfinished = 0;
    bool cancelled = false;
  };
  void Count(std::map<GroupId, Expected>::iterator found) {
    if (--found->second.unfinished == 0) groups_.erase(found);
  }

  const RemoteOptions options_;
  std::mt19937_64 random_;
  RemoteWorld world_;
  const double lies_;
  std::map<GroupId, Expected> groups_;
  int64_t next_group_ = 1;
  int64_t version_ = -1;
  PolicyVersion synced_{0};
  bool synced_set_ = false;
  bool gone_ = false;
};

RemoteOptions OptionsOf(SyncMode mode, bool scores, uint64_t seed) {
  RemoteOptions options = WorldOptions(mode, scores);
  options.weights = seed / 2 % 2 == 0 ? WeightPath::kFolder : WeightPath::kChannel;
  options.pauses_in_turn = seed % 5 < 2;
  return options;
}

TEST(RemoteRandomTest, AnHonestServerGivesExactVersionsAndScores) {
  int64_t num_finished = 0;
  int64_t num_scored = 0;
  int64_t num_bound = 0;
  int64_t num_buckets = 0;
  uint64_t seed = 1;
  for (const SyncMode mode : {SyncMode::kReprefill, SyncMode::kKeep, SyncMode::kDrain}) {
    for (const bool scores : {true, false}) {
      if (scores && mode != SyncMode::kReprefill) continue;
      for (int64_t done = 0; done < NumEvents() / 8;) {
        RandomRun run(OptionsOf(mode, scores, seed), seed, 0);
        ++seed;
        done += run.Run(3000);
        run.End();
        EXPECT_FALSE(run.gone());
        num_finished += run.num_finished;
        num_scored += run.num_scored;
        num_bound += run.num_bound;
        num_buckets += run.num_buckets();
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(num_finished, 100);
  EXPECT_GT(num_scored, 20);
  EXPECT_GT(num_bound, 20);
  EXPECT_GT(num_buckets, 20) << "of SGLang's updates";
}

TEST(RemoteRandomTest, ALyingServerCannotBreakARule) {
  uint64_t seed = 1000;
  int64_t num_finished = 0;
  int64_t num_gone = 0;
  int64_t num_events = 0;
  for (; num_events < NumEvents(); ++seed) {
    const SyncMode mode = seed % 4 == 1   ? SyncMode::kKeep
                          : seed % 4 == 3 ? SyncMode::kDrain
                                          : SyncMode::kReprefill;
    const bool scores = seed % 8 == 0 || seed % 8 == 4;
    RandomRun run(OptionsOf(mode, scores, seed), seed, 0.05);
    num_events += run.Run(3000);
    run.End();
    num_finished += run.num_finished;
    num_gone += run.gone() ? 1 : 0;
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(num_finished, 100);
  EXPECT_GT(num_gone, 10);
  RecordProperty("events", std::to_string(num_events));
}

}  // namespace
}  // namespace pace
