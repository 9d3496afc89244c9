// What a benchmark ran on, and how much memory it holds.
#ifndef PACE_BENCH_MACHINE_H_
#define PACE_BENCH_MACHINE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/json_writer.h"
#include "model/cuda/decode/cuda_decoder.h"

namespace pace {

// Bytes in use by the allocator, its own overhead included; under a sanitizer,
// whose allocator answers no such question, 0.
int64_t AllocatedBytes();

// An object: cpu, cores, load, memory, compiler, build type.
void WriteMachine(JsonWriter& json);

// The key "gpu" and an object: name, versions of CUDA, memory, and what was measured
// of it.
using MeasuredLimits = std::vector<std::pair<std::string, double>>;
void WriteGpu(const CudaDevice& device, const MeasuredLimits& limits, JsonWriter& json);

}  // namespace pace

#endif  // PACE_BENCH_MACHINE_H_
