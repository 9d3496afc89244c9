// `pace bench serve` in a build for another processor.
#include "bench/benches.h"

namespace pace {

Status RunServeBench(const BenchOptions& /*options*/, BenchReport& /*report*/) {
  return Unavailable("this build of pace has no clients of servers");
}

}  // namespace pace
