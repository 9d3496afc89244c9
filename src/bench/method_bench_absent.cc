#include "bench/method_bench.h"

namespace pace {

Result<std::string> RunMethodBench(const MethodBenchOptions& /*options*/) {
  return Unavailable("this build of pace has no LibTorch (build it without PACE_CORE_ONLY)");
}

}  // namespace pace
