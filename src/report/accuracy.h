// Accuracy over a run: what eval.jsonl says about each benchmark.
//
//   for (const BenchmarkColumns& benchmark : BenchmarksOf(run.evaluations)) {
//     Use(AccuracyOver(run.evaluations, {&benchmark, 1}));
//   }
//
// Thread-safety: pure functions.
#ifndef PACE_REPORT_ACCURACY_H_
#define PACE_REPORT_ACCURACY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/metrics_table.h"

namespace pace {

// The names under which one benchmark is recorded.
struct BenchmarkColumns {
  std::string name;        // NAME of eval/NAME/mean@K
  std::string k;           // K
  std::string mean;        // eval/NAME/mean@K
  std::string half_width;  // eval/NAME/mean@K_half_width
  std::string length;      // eval/NAME/length
};

// In the order of the file. Of a benchmark recorded with several K, the first.
std::vector<BenchmarkColumns> BenchmarksOf(const MetricsTable& evaluations);

// One evaluation: shares of correct responses.
struct AccuracyPoint {
  int64_t step = 0;  // the version evaluated
  std::optional<double> time;
  double mean = 0;
  double half_width = 0;  // of a 95 % interval; 0 where it is not known
};

// The plain mean over these benchmarks, one point per evaluation that has all
// of them. The benchmarks count as independent.
std::vector<AccuracyPoint> AccuracyOver(const MetricsTable& evaluations,
                                        std::span<const BenchmarkColumns> benchmarks);

// Every so many of them, at most `most`, the first and the last included.
// REQUIRES: most >= 2
std::vector<AccuracyPoint> Thinned(const std::vector<AccuracyPoint>& points, size_t most);

// "sums", "6 benchmarks"; empty without any.
std::string BenchmarksName(std::span<const BenchmarkColumns> benchmarks);

// "76.3 %", and "76.3 % ± 2.9" where the half width is known.
std::string AccuracyText(double mean, double half_width = 0);

}  // namespace pace

#endif  // PACE_REPORT_ACCURACY_H_
