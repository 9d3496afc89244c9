// The benchmarks that train, in a build without LibTorch.
#include "bench/benches.h"

namespace pace {

Status RunTrainBench(const BenchOptions& /*options*/, BenchReport& /*report*/) {
  return Unavailable("this build of pace has no LibTorch (build it without PACE_CORE_ONLY)");
}

Status RunRankBench(const BenchOptions& options, BenchReport& report) {
  return RunTrainBench(options, report);
}

Status RunMethodBench(const BenchOptions& options, BenchReport& report) {
  return RunTrainBench(options, report);
}

}  // namespace pace
