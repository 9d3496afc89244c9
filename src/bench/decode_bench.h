// Decoding speed of one device: `pace bench decode`, against the limit that
// reading weights and cache once per token sets, and beside `transformers`.
//
// Random weights in bf16, every sequence at the same context, sampling at
// temperature 1. A token's time is the wall clock's, host work included.
#ifndef PACE_BENCH_DECODE_BENCH_H_
#define PACE_BENCH_DECODE_BENCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "model/devices.h"

namespace pace {

struct DecodeBenchOptions {
  DeviceKind device = DeviceKind::kCuda;
  int64_t repetitions = 5;
  bool python = true;
  int64_t num_threads = 2;  // cpu
  int64_t context = 512;
  int64_t new_tokens = 64;
  // qwen3-4b, qwen3-0.6b, or tiny: a Qwen3 of 15 M.
  std::vector<std::string> shapes = {"qwen3-4b", "qwen3-0.6b"};
  std::vector<int64_t> batches = {1, 128};

  [[nodiscard]] Status Validate() const;
};

// One JSON object on one line, as RunControllerBench.
Result<std::string> RunDecodeBench(const DecodeBenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_DECODE_BENCH_H_
