#include "bench/measurement.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "core/check.h"
#include "core/clock.h"

namespace pace {
namespace {

double QuantileOf(std::vector<double> values, double p) {
  PACE_CHECK(!values.empty(), "nothing was measured");
  std::sort(values.begin(), values.end());
  const double h = static_cast<double>(values.size() - 1) * p;
  const auto low = static_cast<size_t>(h);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (h - static_cast<double>(low));
}

// Time that this thread has spent on a core.
Seconds CpuTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return Seconds(static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec));
}

}  // namespace

double MedianOf(std::vector<double> values) {
  return QuantileOf(std::move(values), 0.5);
}

std::pair<double, double> MedianIntervalOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  // Each value lies below the median like a tossed coin: the median is outside
  // [cut, n - 1 - cut] where at most `cut` of n coins show one side.
  size_t cut = 0;
  double coins = std::pow(0.5, static_cast<double>(n));
  double tail = coins;
  while (cut + 1 < n - 1 - cut) {
    coins *= static_cast<double>(n - cut) / static_cast<double>(cut + 1);
    if (2 * (tail + coins) > 0.05) break;
    tail += coins;
    ++cut;
  }
  return {values[cut], values[n - 1 - cut]};
}

double Measurement::Median() const {
  return MedianOf(repetitions);
}

double Measurement::InterquartileRange() const {
  return QuantileOf(repetitions, 0.75) - QuantileOf(repetitions, 0.25);
}

bool Measurement::WithinLimit() const {
  if (!limit.has_value()) return true;
  return limit_kind == Limit::kAtMost ? Median() <= *limit : Median() >= *limit;
}

void Measurement::Write(JsonWriter& json) const {
  json.BeginObject();
  json.Put("name", name);
  json.Put("value", Median());
  json.Put("unit", unit);
  json.Put("limit", limit);
  if (limit.has_value()) {
    json.Put("limit_kind", limit_kind == Limit::kAtMost ? "at_most" : "at_least");
  }
  json.Put("ok", WithinLimit());
  json.Put("median", Median());
  json.Put("interquartile_range", InterquartileRange());
  PutArray(json, "repetitions", repetitions);
  if (!cpu_shares.empty()) PutArray(json, "cpu_shares", cpu_shares);
  json.EndObject();
}

void RunRound(std::vector<MeasuredLoop>& benchmarks, double seconds) {
  for (MeasuredLoop& benchmark : benchmarks) {
    const WallClock clock;
    const Seconds cpu_before = CpuTime();
    benchmark.measurement.repetitions.push_back(benchmark.run(seconds));
    const double share = (CpuTime() - cpu_before) / clock.Now();
    benchmark.measurement.cpu_shares.push_back(std::min(share, 1.0));
  }
}

Measurement Rate(std::string name, std::string unit, std::optional<double> at_least) {
  return {.name = std::move(name),
          .unit = std::move(unit),
          .limit = at_least,
          .limit_kind = Limit::kAtLeast};
}

Measurement Known(std::string name, std::string unit, double value, std::optional<double> at_most) {
  return {
      .name = std::move(name), .unit = std::move(unit), .limit = at_most, .repetitions = {value}};
}

Measurement RatioOf(const Measurement& a, const Measurement& b, std::string name,
                    std::optional<double> limit, Limit limit_kind) {
  PACE_CHECK(a.repetitions.size() == b.repetitions.size(), "repetitions come in pairs");
  Measurement ratio{
      .name = std::move(name), .unit = "ratio", .limit = limit, .limit_kind = limit_kind};
  for (size_t i = 0; i < a.repetitions.size(); ++i) ratio.Add(a.repetitions[i] / b.repetitions[i]);
  return ratio;
}

}  // namespace pace
