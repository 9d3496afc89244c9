// How fast the responses of a checkpoint are written and read: `pace bench checkpoint`,
// beside writing and reading the same bytes plainly in the same rounds, and how much
// memory that takes beyond the responses themselves.
#ifndef PACE_BENCH_CHECKPOINT_BENCH_H_
#define PACE_BENCH_CHECKPOINT_BENCH_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace pace {

struct CheckpointBenchOptions {
  int64_t repetitions = 7;
  int64_t num_responses = 100'000;
  int64_t num_tokens = 1'000;  // of each
  int64_t group_size = 16;
  std::string folder = {};  // for the files; empty = a temporary one
};

// One JSON object on one line, as RunControllerBench.
Result<std::string> RunCheckpointBench(const CheckpointBenchOptions& options);

}  // namespace pace

#endif  // PACE_BENCH_CHECKPOINT_BENCH_H_
