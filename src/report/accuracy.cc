#include "report/accuracy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/check.h"
#include "core/concat.h"
#include "report/axes.h"

namespace pace {
namespace {

constexpr std::string_view kPrefix = "eval/";
constexpr std::string_view kMean = "/mean@";

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<BenchmarkColumns> ColumnsOf(const std::string& metric) {
  const size_t mean = metric.rfind(kMean);
  if (!metric.starts_with(kPrefix) || mean == std::string::npos || mean <= kPrefix.size()) {
    return std::nullopt;
  }
  const std::string k = metric.substr(mean + kMean.size());
  if (!IsNumber(k)) return std::nullopt;
  const std::string name = metric.substr(kPrefix.size(), mean - kPrefix.size());
  return BenchmarkColumns{.name = name,
                          .k = k,
                          .mean = metric,
                          .half_width = metric + "_half_width",
                          .length = Concat(kPrefix, name, "/length")};
}

// Accuracies are compared to a tenth of a percent.
std::string Tenths(double share) {
  const double percent = 100 * share;
  if (!(std::abs(percent) < 1e6)) return Readable(percent);
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), percent,
                                 std::chars_format::fixed, 1)
                       .ptr;
  return {buffer.data(), end};
}

}  // namespace

std::vector<BenchmarkColumns> BenchmarksOf(const MetricsTable& evaluations) {
  std::vector<BenchmarkColumns> found;
  for (const std::string& metric : evaluations.names()) {
    const std::optional<BenchmarkColumns> columns = ColumnsOf(metric);
    if (!columns.has_value() || !evaluations.Has(metric)) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const BenchmarkColumns& other) {
      return other.name == columns->name;
    });
    if (!known) found.push_back(*columns);
  }
  return found;
}

std::vector<AccuracyPoint> AccuracyOver(const MetricsTable& evaluations,
                                        std::span<const BenchmarkColumns> benchmarks) {
  std::vector<AccuracyPoint> points;
  if (benchmarks.empty()) return points;
  const auto count = static_cast<double>(benchmarks.size());
  for (size_t row = 0; row < evaluations.num_rows(); ++row) {
    AccuracyPoint point;
    point.step = evaluations.steps()[row];
    point.time = evaluations.At("time", row);
    double squares = 0;
    bool has_all = true;
    for (const BenchmarkColumns& benchmark : benchmarks) {
      const std::optional<double> mean = evaluations.At(benchmark.mean, row);
      const double half_width = evaluations.At(benchmark.half_width, row).value_or(0);
      has_all = has_all && mean.has_value();
      point.mean += mean.value_or(0) / count;
      squares += half_width * half_width;
    }
    point.half_width = std::sqrt(squares) / count;
    if (has_all) points.push_back(point);
  }
  return points;
}

std::vector<AccuracyPoint> Thinned(const std::vector<AccuracyPoint>& points, size_t most) {
  PACE_CHECK(most >= 2, most);
  if (points.size() <= most) return points;
  std::vector<AccuracyPoint> out;
  for (size_t i = 0; i < most; ++i) out.push_back(points[i * (points.size() - 1) / (most - 1)]);
  return out;
}

std::string BenchmarksName(std::span<const BenchmarkColumns> benchmarks) {
  if (benchmarks.empty()) return "";
  if (benchmarks.size() == 1) return benchmarks.front().name;
  return Concat(benchmarks.size(), " benchmarks");
}

std::string AccuracyText(double mean, double half_width) {
  std::string out = Concat(Tenths(mean), "\u00a0%");
  if (half_width > 0) out += Concat(" \u00b1\u00a0", Tenths(half_width));
  return out;
}

}  // namespace pace
