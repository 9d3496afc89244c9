#include "bench/controller_bench.h"

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/admission_loops.h"
#include "bench/bench_report.h"
#include "bench/coordinator_loop.h"
#include "bench/measurement.h"
#include "bench/pool_loop.h"
#include "bench/python_peer.h"
#include "core/json_writer.h"

namespace pace {
namespace {

constexpr int64_t kWindow = 512;
constexpr int64_t kRunningGroups = 100'000;

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

template <typename Loop>
MeasuredLoop Of(Measurement measurement, Loop& loop) {
  return {std::move(measurement), [&loop](double seconds) { return loop.Run(seconds); }};
}

Measurement Rate(std::string name, std::string unit, std::optional<double> limit = std::nullopt) {
  return {.name = std::move(name),
          .unit = std::move(unit),
          .limit = limit,
          .limit_kind = Limit::kAtLeast};
}

// In the order of Index.
std::vector<MeasuredLoop> MakeBenchmarks(Loops& loops, const BenchOptions& options) {
  const std::string small = Concat("_at_", options.small_pool);
  const std::string large = Concat("_at_", options.large_pool);
  const std::string responses = "response events/s";
  const std::string pairs = "put and draw pairs/s";
  std::vector<MeasuredLoop> benchmarks;
  benchmarks.push_back(
      Of({.name = "verdict", .unit = "ns", .limit = kMaxVerdictNanoseconds}, loops.verdict));
  benchmarks.push_back(Of({.name = "begin_step", .unit = "us", .limit = kMaxBeginStepMicroseconds},
                          loops.begin_step));
  benchmarks.push_back(
      Of(Rate("coordinator", responses, kMinResponsesPerSecond), loops.coordinator));
  benchmarks.push_back(Of(Rate("coordinator" + small, responses), loops.small_coordinator));
  benchmarks.push_back(Of(Rate("coordinator" + large, responses), loops.large_coordinator));
  benchmarks.push_back(
      Of(Rate("pool_completion" + small, pairs, kMinPoolPairsPerSecond), loops.pools[0]));
  benchmarks.push_back(Of(Rate("pool_completion" + large, pairs), loops.pools[1]));
  benchmarks.push_back(Of(Rate("pool_newest" + small, pairs), loops.pools[2]));
  benchmarks.push_back(Of(Rate("pool_newest" + large, pairs), loops.pools[3]));
  benchmarks.push_back(Of(Rate("pool_lowest_score" + small, pairs), loops.pools[4]));
  benchmarks.push_back(Of(Rate("pool_lowest_score" + large, pairs), loops.pools[5]));
  return benchmarks;
}

// The peer's repetitions, or why there are none.
struct Peer {
  Status status;
  std::vector<PeerNumbers> rounds;

  void RunRound(const BenchOptions& options) {
    if (!options.python || !status.ok()) return;
    Result<PeerNumbers> numbers = MeasurePeer(options.seconds_per_measurement, kWindow,
                                              options.small_pool, options.large_pool);
    if (numbers.ok()) {
      rounds.push_back(*std::move(numbers));
    } else {
      status = numbers.status();
    }
  }
};

void WritePeerRow(JsonWriter& json, const Measurement& ours, const Peer& peer,
                  double PeerNumbers::* field) {
  std::vector<double> values;
  for (const PeerNumbers& round : peer.rounds) values.push_back(round.*field);
  const Measurement theirs{.name = ours.name,
                           .unit = ours.unit,
                           .limit = std::nullopt,
                           .limit_kind = ours.limit_kind,
                           .repetitions = values};
  const double ratio = ours.Median() / theirs.Median();
  json.BeginObject();
  json.Put("name", ours.name);
  json.Put("unit", ours.unit);
  json.Put("ours", ours.Median());
  json.Put("peer", theirs.Median());
  json.Put("ratio", ratio);  // ours / theirs
  json.Put("times_faster", ours.limit_kind == Limit::kAtMost ? 1 / ratio : ratio);
  json.Put("peer_interquartile_range", theirs.InterquartileRange());
  json.Key("peer_repetitions");
  json.BeginArray();
  for (const double value : values) json.Value(value);
  json.EndArray();
  json.EndObject();
}

void WritePeer(JsonWriter& json, const std::vector<MeasuredLoop>& benchmarks, const Peer& peer) {
  json.BeginObject();
  json.Put("implementation", "naive_controller.py");
  json.Put("measured", !peer.rounds.empty());
  if (peer.rounds.empty()) {
    json.Put("why_not", peer.status.ok() ? "not asked for" : peer.status.message());
    json.EndObject();
    return;
  }
  json.Put("python", peer.rounds.front().python);
  if (!peer.status.ok()) json.Put("stopped_early", peer.status.message());
  json.Key("measurements");
  json.BeginArray();
  const std::pair<Index, double PeerNumbers::*> rows[] = {
      {kVerdict, &PeerNumbers::verdict},
      {kBeginStep, &PeerNumbers::begin_step},
      {kSmallPool, &PeerNumbers::pool_small},
      {kLargePool, &PeerNumbers::pool_large},
      {kSmallLowest, &PeerNumbers::pool_small_lowest_score}};
  for (const auto& [index, field] : rows) {
    WritePeerRow(json, benchmarks[index].measurement, peer, field);
  }
  json.EndArray();
  json.EndObject();
}

void WriteSettings(JsonWriter& json, const BenchOptions& options) {
  const CoordinatorLoopOptions coordinator;
  json.BeginObject();
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
  json.EndObject();
}

Status Check(const BenchOptions& options) {
  if (options.repetitions < 1 || options.repetitions > 1000) {
    return InvalidArgument("repetitions = ", options.repetitions, ": must be in [1, 1000]");
  }
  if (!(options.seconds_per_measurement > 0) || options.seconds_per_measurement > 60) {
    return InvalidArgument("seconds_per_measurement = ", options.seconds_per_measurement,
                           ": must be in (0, 60]");
  }
  if (options.small_pool < 100 || options.large_pool <= options.small_pool ||
      options.large_pool > 10'000'000) {
    return InvalidArgument("small_pool = ", options.small_pool,
                           ", large_pool = ", options.large_pool,
                           ": must be 100 <= small < large <= 10000000");
  }
  return Status::Ok();
}

std::vector<Measurement> Derive(const std::vector<MeasuredLoop>& benchmarks, const Loops& loops) {
  std::vector<Measurement> all;
  for (const MeasuredLoop& benchmark : benchmarks) all.push_back(benchmark.measurement);
  // Rates the other way round are costs.
  all.push_back(RatioOf(benchmarks[kSmallCoordinator].measurement,
                        benchmarks[kLargeCoordinator].measurement,
                        "coordinator_cost_large_over_small", kMaxGrowth));
  all.push_back(RatioOf(benchmarks[kSmallPool].measurement, benchmarks[kLargePool].measurement,
                        "pool_cost_large_over_small", kMaxGrowth));
  const auto bytes = [&all](std::string name, double value) {
    Measurement measurement{.name = std::move(name), .unit = "bytes/group", .limit = std::nullopt};
    measurement.repetitions = {value};
    all.push_back(std::move(measurement));
  };
  bytes("pool_bytes_per_pooled_group", loops.pools[kLargePool - kSmallPool].bytes_per_group());
  bytes("coordinator_bytes_per_pooled_group", loops.large_coordinator.bytes_per_pooled_group());
  bytes("coordinator_bytes_per_running_group",
        BytesPerRunningGroup(kRunningGroups, CoordinatorLoopOptions{}.group_size));
  return all;
}

}  // namespace

Result<std::string> RunControllerBench(const BenchOptions& options) {
  PACE_RETURN_IF_ERROR(Check(options));
  Loops loops(options);
  std::vector<MeasuredLoop> benchmarks = MakeBenchmarks(loops, options);
  Peer peer;
  for (int64_t round = 0; round < options.repetitions; ++round) {
    RunRound(benchmarks, options.seconds_per_measurement);
    peer.RunRound(options);
  }
  const std::vector<Measurement> all = Derive(benchmarks, loops);

  return BenchReport(
      "controller", all, [&](JsonWriter& json) { WriteSettings(json, options); },
      [&](JsonWriter& json) {
        json.Key("peer");
        WritePeer(json, benchmarks, peer);
      });
}

}  // namespace pace
