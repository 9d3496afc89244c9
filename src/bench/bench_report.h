// BenchReport: what a benchmark measured, as JSON and as a table; and BenchOptions, which
// all benchmarks share.
//
//   report.settings().Put("threads", 1);
//   report.measurements.push_back(Rate("encode", "MB/s"));
//   report.more().Put("peer", "tokenizers 0.21");
//   std::puts(report.Json("tokenizer").c_str());
//
// Thread-safety: none.
#ifndef PACE_BENCH_BENCH_REPORT_H_
#define PACE_BENCH_BENCH_REPORT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measurement.h"
#include "core/json_writer.h"
#include "core/status.h"
#include "model/devices.h"

namespace pace {

// A benchmark reads those that its row of Benches() (bench/benches.h) names.
struct BenchOptions {
  int64_t repetitions = 7;  // rounds over all measurements
  bool python = true;       // measure the Python peer, too
  int64_t num_threads = 2;
  std::string model = {};      // a Hugging Face folder; empty = BenchShape(), random weights
  std::string tokenizer = {};  // the folder of tokenizer.json
  std::string texts = {};      // a .jsonl file or a folder of them: each string is a text
  DeviceKind device = DeviceKind::kCpu;
  std::vector<std::string> shapes = {};     // of NamedShape, methods: tasks; empty = by device
  std::vector<int64_t> batches = {1, 128};  // sequences at a time
  std::vector<std::string> overrides = {};  // methods: "key=value", after the task's settings
  int64_t context = 512;                    // tokens before the first decoded one
  int64_t num_reprefilled = 0;              // responses of that context; 0 = not measured
  bool quantized = false;                   // decode: once more with weights in 8 bits
  std::optional<double> memory_gib = {};    // that training may hold; none = as the compiled peer
  int64_t num_responses = 100'000;          // of a checkpoint
  int64_t num_tokens = 1'000;               // of each
  std::function<void(const std::string&)> listener = {};  // told of progress

  // For tests, which must be quick: controller's.
  double seconds_per_measurement = 0.2;
  int64_t small_pool = 1'000;  // the occupancies whose costs are compared
  int64_t large_pool = 1'000'000;
  std::string folder = {};  // of checkpoint's files; empty = a temporary one

  [[nodiscard]] Status Validate() const;
};

// A step of decoding or training in its parts, each beside its limit.
struct StepProfile {
  struct Part {
    std::string name;
    double seconds = 0;  // of all its runs in a step
    double limit = 0;    // seconds that they would take at the limit
  };
  std::string shape;
  double step_seconds = 0;  // of the step as a whole
  std::vector<Part> parts;
};

class BenchReport {
 public:
  BenchReport() = default;
  BenchReport(const BenchReport&) = delete;
  BenchReport& operator=(const BenchReport&) = delete;

  std::vector<Measurement> measurements;
  // Take the keys of the object `settings`, and further keys of the report.
  JsonWriter& settings() { return settings_writer_; }
  JsonWriter& more() { return more_writer_; }
  void PutProfiles(const std::vector<StepProfile>& profiles);

  // One object on one line: what, on which machine, with which settings, every measurement
  // with its limit, and whether all hold.
  std::string Json(std::string_view bench) const;
  // A row for each measurement: median, interquartile range, unit and limit.
  std::string Table() const;

 private:
  std::string settings_, more_;
  JsonWriter settings_writer_{settings_}, more_writer_{more_};
};

}  // namespace pace

#endif  // PACE_BENCH_BENCH_REPORT_H_
