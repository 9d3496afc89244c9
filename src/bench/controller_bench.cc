// `pace bench controller`: what the controller costs.
//
// Verdicts, beginnings of steps, coordinator events and pool operations on one thread, each
// against its limit; how cost grows with the pool; memory per group; and the same rules in
// naive Python, measured in the same rounds.
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "bench/benches.h"
#include "bench/controller_loops.h"
#include "bench/peer.h"

namespace pace {
namespace {

constexpr int64_t kWindow = 512;
constexpr int64_t kRunningGroups = 100'000;
// The peer needs no packages, so any Python will do.
constexpr const char* kPython = "python3";
constexpr const char* kScript = "naive_controller.py";
// For the peer's start-up on a busy machine, on top of its work.
constexpr double kPeerGraceSeconds = 60;

// The limits that this project sets itself.
constexpr double kMaxVerdictNanoseconds = 300;
constexpr double kMaxBeginStepMicroseconds = 50;
constexpr double kMinResponsesPerSecond = 500'000;
constexpr double kMinPoolPairsPerSecond = 1'000'000;
constexpr double kMaxGrowth = 3;  // of cost, from the small pool to the large one

// Everything that is measured, set up once and kept between rounds.
struct Loops {
  explicit Loops(const BenchOptions& options)
      : small_coordinator({.pool_groups = options.small_pool}),
        large_coordinator({.pool_groups = options.large_pool}) {
    for (const DrawOrder order :
         {DrawOrder::kCompletion, DrawOrder::kNewest, DrawOrder::kLowestScore}) {
      for (const int64_t size : {options.small_pool, options.large_pool}) {
        pools.emplace_back(size, order);
      }
    }
  }

  VerdictLoop verdict{kWindow};
  BeginStepLoop begin_step{kWindow};
  CoordinatorLoop coordinator{CoordinatorLoopOptions{}};
  CoordinatorLoop small_coordinator;
  CoordinatorLoop large_coordinator;
  std::deque<PoolLoop> pools;  // by order, then size
};

enum Index : size_t {
  kVerdict,
  kBeginStep,
  kCoordinator,
  kSmallCoordinator,
  kLargeCoordinator,
  kSmallPool,
  kLargePool,
  kSmallNewest,
  kLargeNewest,
  kSmallLowest,
  kLargeLowest,
};

// In the order of Index.
std::vector<MeasuredLoop> MakeMeasuredLoops(Loops& loops, const BenchOptions& options) {
  const std::string sizes[] = {Concat("_at_", options.small_pool),
                               Concat("_at_", options.large_pool)};
  const std::string responses = "response events/s";
  const std::string pairs = "put and draw pairs/s";
  std::vector<MeasuredLoop> all;
  const auto add = [&](Measurement measurement, auto& loop) {
    all.push_back({std::move(measurement), [&loop](double seconds) { return loop.Run(seconds); }});
  };
  add({.name = "verdict", .unit = "ns", .limit = kMaxVerdictNanoseconds}, loops.verdict);
  add({.name = "begin_step", .unit = "us", .limit = kMaxBeginStepMicroseconds}, loops.begin_step);
  add(Rate("coordinator", responses, kMinResponsesPerSecond), loops.coordinator);
  add(Rate("coordinator" + sizes[0], responses), loops.small_coordinator);
  add(Rate("coordinator" + sizes[1], responses), loops.large_coordinator);
  const char* const orders[] = {"pool_completion", "pool_newest", "pool_lowest_score"};
  for (size_t i = 0; i < loops.pools.size(); ++i) {
    add(Rate(orders[i / 2] + sizes[i % 2], pairs), loops.pools[i]);
  }
  all[kSmallPool].measurement.limit = kMinPoolPairsPerSecond;
  return all;
}

// What the peer answers with, and ours beside it.
constexpr std::pair<std::string_view, Index> kPeerRows[] = {
    {"verdict", kVerdict},
    {"begin_step", kBeginStep},
    {"pool_small", kSmallPool},
    {"pool_large", kLargePool},
    {"pool_small_lowest_score", kSmallLowest}};

Result<PeerAnswer> RunPeer(const BenchOptions& options) {
  const double seconds = options.seconds_per_measurement;
  PACE_ASSIGN_OR_RETURN(
      const std::string text,
      RunProgram({kPython, "-I", "-c", PeerScript(kScript), "--bench", Concat(seconds),
                  Concat(kWindow), Concat(options.small_pool), Concat(options.large_pool)},
                 "/dev/null", Seconds(10 * seconds + kPeerGraceSeconds)));
  return PeerAnswer::Parse(
      kScript, text,
      {"verdict", "begin_step", "pool_small", "pool_large", "pool_small_lowest_score"});
}

// The peer's rounds, or why there are none.
struct PeerRounds {
  Status status = Unavailable("not asked for");
  std::vector<PeerAnswer> answers;

  void Run(const BenchOptions& options) {
    Result<PeerAnswer> answer = RunPeer(options);
    status = answer.status();
    if (answer.ok()) answers.push_back(*std::move(answer));
  }
};

void WritePeerRow(JsonWriter& json, const Measurement& ours, const Measurement& theirs) {
  const double ratio = ours.Median() / theirs.Median();
  json.BeginObject();
  json.Put("name", ours.name);
  json.Put("unit", ours.unit);
  json.Put("ours", ours.Median());
  json.Put("peer", theirs.Median());
  json.Put("ratio", ratio);  // ours / theirs
  json.Put("times_faster", ours.limit_kind == Limit::kAtMost ? 1 / ratio : ratio);
  json.Put("peer_interquartile_range", theirs.InterquartileRange());
  PutArray(json, "peer_repetitions", theirs.repetitions);
  json.EndObject();
}

void WritePeer(JsonWriter& json, const std::vector<MeasuredLoop>& loops, const PeerRounds& peer) {
  json.Key("peer");
  json.BeginObject();
  json.Put("implementation", kScript);
  json.Put("measured", !peer.answers.empty());
  if (peer.answers.empty()) {
    json.Put("why_not", peer.status.message());
  } else {
    json.Put("python", peer.answers.front().texts.at("python"));
    if (!peer.status.ok()) json.Put("stopped_early", peer.status.message());
    json.Key("measurements");
    json.BeginArray();
    for (const auto& [key, index] : kPeerRows) {
      Measurement theirs;
      for (const PeerAnswer& answer : peer.answers) theirs.Add(answer.numbers.find(key)->second);
      WritePeerRow(json, loops[index].measurement, theirs);
    }
    json.EndArray();
  }
  json.EndObject();
}

void WriteSettings(JsonWriter& json, const BenchOptions& options) {
  const CoordinatorLoopOptions coordinator;
  json.Put("repetitions", options.repetitions);
  json.Put("seconds_per_measurement", options.seconds_per_measurement);
  json.Put("threads", 1);
  json.Put("window", kWindow);
  json.Put("policy", "pace, variant effective");
  json.Put("batch", coordinator.batch);
  json.Put("group_size", coordinator.group_size);
  json.Put("threshold", coordinator.threshold);
  json.Put("workers", coordinator.num_workers);
  json.Put("groups_per_worker", coordinator.groups_per_worker);
  json.Put("small_pool", options.small_pool);
  json.Put("large_pool", options.large_pool);
}

}  // namespace

Status RunControllerBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  Loops loops(options);
  std::vector<MeasuredLoop> measured = MakeMeasuredLoops(loops, options);
  PeerRounds peer;
  for (int64_t round = 0; round < options.repetitions; ++round) {
    RunRound(measured, options.seconds_per_measurement);
    // A peer that failed once is not asked again.
    if (options.python && (round == 0 || peer.status.ok())) peer.Run(options);
  }
  std::vector<Measurement>& all = report.measurements;
  for (const MeasuredLoop& loop : measured) all.push_back(loop.measurement);
  // Rates the other way round are costs.
  all.push_back(RatioOf(all[kSmallCoordinator], all[kLargeCoordinator],
                        "coordinator_cost_large_over_small", kMaxGrowth));
  all.push_back(
      RatioOf(all[kSmallPool], all[kLargePool], "pool_cost_large_over_small", kMaxGrowth));
  const auto add_bytes = [&](std::string name, double value) {
    all.push_back(Known(std::move(name), "bytes/group", value));
  };
  add_bytes("pool_bytes_per_pooled_group", loops.pools[kLargePool - kSmallPool].bytes_per_group());
  add_bytes("coordinator_bytes_per_pooled_group", loops.large_coordinator.bytes_per_pooled_group());
  add_bytes("coordinator_bytes_per_running_group",
            BytesPerRunningGroup(kRunningGroups, CoordinatorLoopOptions{}.group_size));
  WriteSettings(report.settings(), options);
  WritePeer(report.more(), measured, peer);
  return Status::Ok();
}

}  // namespace pace
