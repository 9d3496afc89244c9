#include "bench/gpu_method_bench.h"
#include "bench/method_bench.h"

namespace pace {

Result<std::string> RunMethodBench(const MethodBenchOptions& /*options*/) {
  return Unavailable("this build of pace has no LibTorch (build it without PACE_CORE_ONLY)");
}

Result<std::string> RunGpuMethodBench(const GpuMethodBenchOptions& /*options*/) {
  return RunMethodBench({});
}

}  // namespace pace
