// The trainer benchmark, in a build without LibTorch.
#include "bench/gpu_train_bench.h"
#include "bench/train_bench.h"

namespace pace {

Result<std::string> RunTrainBench(const TrainBenchOptions& /*options*/) {
  return Unavailable("this build of pace has no LibTorch (build it without PACE_CORE_ONLY)");
}

Result<std::string> RunGpuTrainBench(const GpuTrainBenchOptions& /*options*/) {
  return RunTrainBench({});
}

}  // namespace pace
