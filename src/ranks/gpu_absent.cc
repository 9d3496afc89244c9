#include "ranks/gpu_agreement.h"
#include "ranks/gpu_ranks.h"

namespace pace {

Status ConnectGpus(Communicator& ranks, const RankOptions& /*options*/) {
  return AgreeOnGpus(
      ranks, Unavailable("this build has no CUDA (cmake --preset cuda builds with it)"), "");
}

}  // namespace pace
