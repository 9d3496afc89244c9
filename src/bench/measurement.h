// A Measurement is one number, taken several times.
//
// Other programs share the machine, so repetitions go round-robin over all measurements (a
// busy second then spoils one repetition of each, not all of one) and the median stands for
// them. Time is wall-clock time; the share of it that the thread had a core shows how much
// other work interfered.
#ifndef PACE_BENCH_MEASUREMENT_H_
#define PACE_BENCH_MEASUREMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json_writer.h"

namespace pace {

// REQUIRES: values is not empty.
double MedianOf(std::vector<double> values);

// The order statistics around the median between which it lies with at least
// 95 %; of fewer than six values their whole range. REQUIRES: not empty
std::pair<double, double> MedianIntervalOf(std::vector<double> values);

enum class Limit { kAtMost, kAtLeast };

struct Measurement {
  std::string name;
  std::string unit;
  std::optional<double> limit = {};  // none: reported only
  Limit limit_kind = Limit::kAtMost;
  std::vector<double> repetitions{};
  std::vector<double> cpu_shares{};  // one per repetition, where it is known

  void Add(double value) { repetitions.push_back(value); }
  // REQUIRES: repetitions is not empty.
  double Median() const;
  // Third quartile less first.
  double InterquartileRange() const;
  // True where there is no limit.
  bool WithinLimit() const;
  void Write(JsonWriter& json) const;
};

// Speeds, and whatever else is better the larger it is.
Measurement Rate(std::string name, std::string unit, std::optional<double> at_least = {});
// One that is known already.
Measurement Known(std::string name, std::string unit, double value,
                  std::optional<double> at_most = {});

// What to measure: `run` works for at least `seconds`.
struct MeasuredLoop {
  Measurement measurement;
  std::function<double(double seconds)> run;
};

// One more repetition of each, in order. REQUIRES: what they run neither sleeps
// nor waits.
void RunRound(std::vector<MeasuredLoop>& benchmarks, double seconds);

// a / b, repetition by repetition.
Measurement RatioOf(const Measurement& a, const Measurement& b, std::string name,
                    std::optional<double> limit = {}, Limit limit_kind = Limit::kAtMost);

// Writes a key and an array of numbers or texts.
void PutArray(JsonWriter& json, std::string_view key, const auto& values) {
  json.Key(key);
  json.BeginArray();
  for (const auto& value : values) json.Value(value);
  json.EndArray();
}

// The compiler must assume that `value` is read here.
template <typename T>
void Keep(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

}  // namespace pace

#endif  // PACE_BENCH_MEASUREMENT_H_
