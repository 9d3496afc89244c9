// What a benchmark ran on, and how much memory it takes.
#ifndef PACE_BENCH_MACHINE_H_
#define PACE_BENCH_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_writer.h"
#include "model/cuda/decode/cuda_decoder.h"

namespace pace {

// Bytes in use by the allocator, its own overhead included; 0 under a sanitizer, whose
// allocator does not tell.
int64_t AllocatedBytes();

// PeakMemory: what a piece of work needs, at its peak, above what the process
// held before.
//
//   const PeakMemory peak;
//   // ... the work to measure ...
//   std::optional<int64_t> bytes = peak.Bytes();
//
// By the kernel's count of resident pages, so every allocator is seen. Freed memory
// returns to the system first, which makes the work after it slower: time is measured
// without. Linux only, and one at a time: the kernel keeps one mark for the process.
class PeakMemory {
 public:
  PeakMemory();
  // None where the kernel does not let the mark be reset.
  std::optional<int64_t> Bytes() const;

 private:
  std::optional<int64_t> before_;
};

// An object: cpu, cores, load, memory, compiler, build type.
void WriteMachine(JsonWriter& json);

// The key "gpu" and an object: name, CUDA versions, memory, and measured limits.
using MeasuredLimits = std::vector<std::pair<std::string, double>>;
void WriteGpu(const CudaDevice& device, const MeasuredLimits& limits, JsonWriter& json);

}  // namespace pace

#endif  // PACE_BENCH_MACHINE_H_
