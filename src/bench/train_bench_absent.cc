// The trainer benchmark, in a build without LibTorch.
#include "bench/train_bench.h"

namespace pace {

Result<std::string> RunTrainBench(const TrainBenchOptions& /*options*/) {
  return Unavailable("this build of pace has no LibTorch (build it without PACE_CORE_ONLY)");
}

}  // namespace pace
