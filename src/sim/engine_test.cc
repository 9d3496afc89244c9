#include "sim/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "cluster/cost_model.h"
#include "core/random.h"

namespace pace {
namespace {

struct NaiveCommand {
  double time = 0;
  std::optional<int> start;  // a response
  std::optional<PolicyVersion> sync;
};

struct NaiveResponse {
  int64_t prompt = 0;
  bool prefills = true;
  int64_t num_tokens = 0;
  // Out.
  std::vector<PolicyVersion> versions{};  // one per token
  double finished = 0;
};

// The rules of sim/engine.h, token by token: the reference that the closed form must equal. Runs
// all commands to the end. Commands are sorted by time.
class NaiveEngine {
 public:
  NaiveEngine(const CostModel& costs, const EngineOptions& options,
              std::vector<NaiveResponse>& responses)
      : costs_(costs), options_(options), responses_(responses) {}

  void Run(const std::vector<NaiveCommand>& commands) {
    size_t next = 0;
    while (next < commands.size() || !queue_.empty() || !active_.empty()) {
      if (active_.empty() && queue_.empty() && !sync_.has_value()) {
        time_ = std::max(time_, commands[next].time);
      }
      FinishResponses();
      // What arrives while the engine syncs or prefills is seen before the next
      // iteration too.
      do {
        for (; next < commands.size() && commands[next].time <= time_; ++next) {
          if (commands[next].start.has_value()) queue_.push_back(*commands[next].start);
          if (commands[next].sync.has_value()) sync_ = commands[next].sync;
        }
        Prepare();
      } while (next < commands.size() && commands[next].time <= time_);
      Decode();
    }
  }

  int num_preempted = 0;

 private:
  struct Slot {
    int response;
    int64_t order;
  };

  int64_t Context(int response) const {
    const NaiveResponse& r = responses_[static_cast<size_t>(response)];
    return r.prompt + static_cast<int64_t>(r.versions.size());
  }
  int64_t TotalContext() const {
    int64_t sum = 0;
    for (const Slot& slot : active_) sum += Context(slot.response);
    return sum;
  }

  void FinishResponses() {
    for (size_t i = 0; i < active_.size();) {
      NaiveResponse& r = responses_[static_cast<size_t>(active_[i].response)];
      if (static_cast<int64_t>(r.versions.size()) == r.num_tokens) {
        r.finished = time_;
        active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  void Prepare() {
    if (sync_.has_value()) Sync();
    const auto count = [this] { return static_cast<int64_t>(active_.size()); };
    while (count() > 1 && TotalContext() + count() > options_.kv_capacity) Preempt();
    const auto room = static_cast<int64_t>(0.99 * static_cast<double>(options_.kv_capacity));
    while (!queue_.empty() && count() < options_.slots) {
      const int index = queue_.front();
      if (count() > 0 && TotalContext() + Context(index) + count() + 1 > room) break;
      queue_.pop_front();
      Admit(index);
    }
  }

  void Decode() {
    if (active_.empty()) return;
    time_ += costs_.Decode(static_cast<int64_t>(active_.size())).Iteration(TotalContext());
    for (const Slot& slot : active_) {
      responses_[static_cast<size_t>(slot.response)].versions.push_back(version_);
    }
  }

  void Sync() {
    time_ += costs_.SyncSeconds();
    version_ = *sync_;
    sync_.reset();
    PassSize rebuilt, scored_pass;
    double scored = 0;
    for (const Slot& slot : active_) {
      const NaiveResponse& r = responses_[static_cast<size_t>(slot.response)];
      rebuilt += PassSize::Extending(0, static_cast<double>(Context(slot.response)));
      const auto done = static_cast<int64_t>(r.versions.size());
      if (done < options_.prefix.min_tokens) continue;
      const int64_t prefix = std::min(done, options_.prefix.max_tokens);
      scored += static_cast<double>(prefix);
      scored_pass += PassSize::Extending(0, static_cast<double>(r.prompt + prefix));
    }
    if (options_.rescore && scored > 0) time_ += costs_.RescoreSeconds(scored, scored_pass);
    if (options_.reprefill && !active_.empty()) time_ += costs_.PrefillSeconds(rebuilt);
  }

  void Preempt() {
    const auto youngest =
        std::max_element(active_.begin(), active_.end(),
                         [](const Slot& a, const Slot& b) { return a.order < b.order; });
    uncached_[youngest->response] = Context(youngest->response);
    left_version_[youngest->response] = version_;
    queue_.push_front(youngest->response);
    active_.erase(youngest);
    ++num_preempted;
  }

  void Admit(int index) {
    const NaiveResponse& r = responses_[static_cast<size_t>(index)];
    int64_t uncached = r.versions.empty() && r.prefills ? r.prompt : 0;
    const bool left = left_version_.contains(index);
    if (left) uncached = uncached_[index];
    const bool synced = left && left_version_[index] != version_;
    const double context = static_cast<double>(Context(index));
    if (synced && options_.reprefill) uncached = Context(index);
    time_ += costs_.PrefillSeconds(PassSize::Extending(context - static_cast<double>(uncached),
                                                       static_cast<double>(uncached)));
    const auto done = static_cast<int64_t>(r.versions.size());
    if (synced && options_.rescore && done >= options_.prefix.min_tokens) {
      const auto scored = static_cast<double>(std::min(done, options_.prefix.max_tokens));
      time_ += costs_.RescoreSeconds(
          scored, PassSize::Extending(0, static_cast<double>(r.prompt) + scored));
    }
    active_.push_back({index, next_order_++});
  }

  const CostModel& costs_;
  const EngineOptions& options_;
  std::vector<NaiveResponse>& responses_;
  double time_ = 0;
  PolicyVersion version_;
  std::optional<PolicyVersion> sync_;
  std::vector<Slot> active_;
  std::deque<int> queue_;
  std::map<int, int64_t> uncached_;
  std::map<int, PolicyVersion> left_version_;
  int64_t next_order_ = 0;
};

ModelOptions TinyModel() {
  ModelOptions model;
  model.num_layers = 2;
  model.hidden = 64;
  model.num_heads = 4;
  model.num_kv_heads = 2;
  model.head_dim = 16;
  model.ffn = 128;
  model.vocab = 500;
  return model;
}

// A machine on which every part of the cost model takes noticeable time.
GpuOptions SlowGpu() {
  GpuOptions gpu;
  gpu.peak_tflops = 2e-4;
  gpu.memory_tb_per_s = 2e-4;
  gpu.launch_us_per_layer = 500;
  return gpu;
}

struct Scenario {
  CostModel costs;
  EngineOptions options;
  std::vector<NaiveResponse> responses;
  std::vector<NaiveCommand> commands;
};

Scenario RandomScenario(uint64_t trial) {
  const CounterRandom random(77, 5);
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) {
    return static_cast<int64_t>(random.Bits(trial, draw++) % n);
  };
  ClusterOptions cluster;
  cluster.slots = 1 + below(12);
  cluster.sync_overhead_s = 0.01;
  cluster.kv_at_sync = below(2) == 0 ? KvAtSync::kKeep : KvAtSync::kRecompute;
  auto costs = CostModel::Create(TinyModel(), SlowGpu(), cluster);
  EXPECT_TRUE(costs.ok());
  Scenario setup{*costs, {}, {}, {}};
  setup.options.slots = cluster.slots;
  setup.options.kv_capacity = 150 + below(600);
  setup.options.reprefill = cluster.kv_at_sync == KvAtSync::kRecompute;
  setup.options.rescore = below(2) == 0;
  setup.options.prefix.min_tokens = 1 + below(20);
  setup.options.prefix.max_tokens = setup.options.prefix.min_tokens + below(30);

  setup.commands.push_back({0, std::nullopt, PolicyVersion(0)});
  const int64_t count = 1 + below(30);
  for (int64_t i = 0; i < count; ++i) {
    setup.responses.push_back(
        {.prompt = below(20), .prefills = below(2) == 0, .num_tokens = 1 + below(100)});
    setup.commands.push_back(
        {0.001 * static_cast<double>(below(3000)), static_cast<int>(i), std::nullopt});
  }
  double time = 0;
  const int64_t num_syncs = below(8);
  for (int64_t i = 0; i < num_syncs; ++i) {
    // Far enough apart that one is over before the next.
    time += 1.5 + 0.001 * static_cast<double>(below(1000));
    setup.commands.push_back({time, std::nullopt, PolicyVersion(i + 1)});
  }
  std::sort(setup.commands.begin(), setup.commands.end(),
            [](const NaiveCommand& a, const NaiveCommand& b) {
              if (a.time != b.time) return a.time < b.time;
              return a.start.value_or(-1) < b.start.value_or(-1);  // syncs first
            });
  return setup;
}

struct Outcome {
  std::vector<double> finished;
  std::vector<std::vector<PolicyVersion>> versions;
  int64_t num_preempted = 0;
  int64_t num_tokens = 0;
};

Outcome RunClosedForm(const Scenario& setup) {
  SimResponses table;
  table.Resize(setup.responses.size());
  table.keep_runs = true;
  for (size_t i = 0; i < setup.responses.size(); ++i) {
    Response& response = table.responses[i];
    response.num_tokens = static_cast<int32_t>(setup.responses[i].num_tokens);
    response.context = static_cast<int32_t>(setup.responses[i].prompt);
    response.uncached = setup.responses[i].prefills ? response.context : 0;
  }
  Engine engine(setup.costs, setup.options, table, Seconds(0));
  Outcome outcome;
  outcome.finished.resize(setup.responses.size());
  const auto act = [&] {
    const Seconds now = engine.next_time();
    const EngineReport report = engine.Act();
    if (report.event == EngineEvent::kStretchEnded) {
      outcome.finished[static_cast<size_t>(report.response)] = now.count();
    }
  };
  for (const NaiveCommand& command : setup.commands) {
    while (engine.next_time() <= Seconds(command.time)) act();
    if (command.start.has_value()) engine.Enqueue(Seconds(command.time), *command.start);
    if (command.sync.has_value()) engine.BeginSync(Seconds(command.time), *command.sync);
  }
  while (!std::isinf(engine.next_time().count())) act();
  EXPECT_FALSE(engine.busy());
  for (const VersionRuns& runs : table.runs) {
    outcome.versions.emplace_back();
    for (const Segment& segment : runs.segments()) {
      outcome.versions.back().insert(outcome.versions.back().end(),
                                     static_cast<size_t>(segment.num_tokens), segment.version);
    }
  }
  outcome.num_preempted = engine.num_preempted();
  outcome.num_tokens = engine.NumTokens(Seconds(1e9));
  return outcome;
}

TEST(EngineTest, TheClosedFormEqualsTheTokenByTokenEngine) {
  int64_t num_preempted = 0, num_interrupted = 0;
  for (uint64_t trial = 0; trial < 400; ++trial) {
    Scenario setup = RandomScenario(trial);
    const Outcome fast = RunClosedForm(setup);
    NaiveEngine naive(setup.costs, setup.options, setup.responses);
    naive.Run(setup.commands);
    int64_t num_tokens = 0;
    for (size_t i = 0; i < setup.responses.size(); ++i) {
      const NaiveResponse& response = setup.responses[i];
      num_tokens += response.num_tokens;
      ASSERT_NEAR(fast.finished[i], response.finished, 1e-7) << "trial " << trial << " at " << i;
      ASSERT_EQ(fast.versions[i], response.versions) << "trial " << trial << " at " << i;
      num_interrupted += response.versions.front() != response.versions.back();
    }
    ASSERT_EQ(fast.num_preempted, naive.num_preempted) << "trial " << trial;
    ASSERT_EQ(fast.num_tokens, num_tokens);
    num_preempted += naive.num_preempted;
  }
  // The cases must reach what they are there to test.
  EXPECT_GT(num_preempted, 100);
  EXPECT_GT(num_interrupted, 500);
}

class EngineAloneTest : public testing::Test {
 protected:
  EngineAloneTest() {
    ClusterOptions cluster;
    cluster.decode_costs = DecodeCosts::kConstant;
    cluster.seconds_per_token = 1;
    cluster.sync_overhead_s = 5;
    costs_.emplace(*CostModel::Create(ModelOptions(), GpuOptions(), cluster));
    options_.slots = 2;
    options_.kv_capacity = 1000000;
    table_.Resize(4);
    for (Response& response : table_.responses) response.num_tokens = 10;
  }
  std::optional<CostModel> costs_;
  EngineOptions options_;
  SimResponses table_;
};

TEST_F(EngineAloneTest, ACommandTakesEffectAtTheEndOfTheIteration) {
  Engine engine(*costs_, options_, table_, Seconds(0));
  engine.BeginSync(Seconds(0), PolicyVersion(0));
  EXPECT_EQ(engine.next_time(), Seconds(5));
  EXPECT_EQ(engine.Act().event, EngineEvent::kSynced);
  engine.Enqueue(Seconds(5), 0);
  engine.Act();
  EXPECT_EQ(engine.next_time(), Seconds(15));
  engine.BeginSync(Seconds(8.5), PolicyVersion(1));  // four iterations are done at 9
  EXPECT_EQ(engine.next_time(), Seconds(14));
  EXPECT_EQ(engine.Act().event, EngineEvent::kSynced);
  EXPECT_EQ(engine.next_time(), Seconds(20));
  EXPECT_EQ(engine.Act().event, EngineEvent::kStretchEnded);
  const std::vector<Segment> expected = {{PolicyVersion(0), 4}, {PolicyVersion(1), 6}};
  EXPECT_EQ(table_.last_runs.segments(), expected);
}

TEST_F(EngineAloneTest, ResponsesBeyondTheSlotsWaitInLine) {
  Engine engine(*costs_, options_, table_, Seconds(0));
  engine.BeginSync(Seconds(0), PolicyVersion(0));
  engine.Act();
  for (const ResponseIndex response : {0, 1, 2}) engine.Enqueue(Seconds(5), response);
  engine.Act();
  EXPECT_EQ(engine.num_active(), 2);
  EXPECT_EQ(engine.Act().response, 0);
  EXPECT_EQ(engine.Act().response, 1);
  EXPECT_EQ(engine.next_time(), Seconds(25));
  EXPECT_EQ(engine.Act().response, 2);
  EXPECT_FALSE(engine.busy());
  EXPECT_EQ(engine.NumTokens(Seconds(25)), 30);
}

TEST_F(EngineAloneTest, ARemovedResponseKeepsItsWholeIterations) {
  Engine engine(*costs_, options_, table_, Seconds(0));
  engine.BeginSync(Seconds(0), PolicyVersion(3));
  engine.Act();
  engine.Enqueue(Seconds(5), 0);
  engine.Enqueue(Seconds(5), 1);
  engine.Act();
  engine.Remove(Seconds(8.5), 0);
  EXPECT_EQ(table_.responses[0].num_done, 3);
  const std::vector<Segment> expected = {{PolicyVersion(3), 3}};
  EXPECT_EQ(table_.runs[0].segments(), expected);
  engine.Act();
  EXPECT_EQ(engine.next_time(), Seconds(15));
  EXPECT_EQ(engine.Act().response, 1);
}

TEST_F(EngineAloneTest, APauseStopsDecodingUntilResume) {
  Engine engine(*costs_, options_, table_, Seconds(0));
  engine.BeginSync(Seconds(0), PolicyVersion(0));
  engine.Act();
  engine.Enqueue(Seconds(5), 0);
  engine.Act();
  engine.Pause(Seconds(7.5));
  EXPECT_EQ(engine.next_time(), Seconds(8));
  EXPECT_EQ(engine.Act().event, EngineEvent::kPaused);
  EXPECT_TRUE(std::isinf(engine.next_time().count()));
  engine.Resume(Seconds(100));
  engine.Act();
  EXPECT_EQ(engine.next_time(), Seconds(107));
}

TEST_F(EngineAloneTest, TurnsEndInEqualParts) {
  Response& response = table_.responses[0];
  response.num_turns = 3;
  Engine engine(*costs_, options_, table_, Seconds(0));
  engine.BeginSync(Seconds(0), PolicyVersion(0));
  engine.Act();
  engine.Enqueue(Seconds(5), 0);
  engine.Act();
  EXPECT_EQ(engine.next_time(), Seconds(8));  // 10 tokens end turns at 3, 6, 10
  engine.Act();
  EXPECT_EQ(response.num_done, 3);
  ++response.turn;
  engine.Enqueue(Seconds(20), 0);
  engine.Act();
  EXPECT_EQ(engine.next_time(), Seconds(23));
}

}  // namespace
}  // namespace pace
