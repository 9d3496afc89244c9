#include "model/gradient/training_kernels.h"

#include "core/check.h"
#include "model/gradient/training_levels.h"

namespace pace {

const TrainingKernels& TrainingKernelsOf(Isa isa) {
  PACE_CHECK(isa <= BestIsa(), "this machine has no ", IsaName(isa));
#if defined(__x86_64__)
  if (isa >= Isa::kAvx512) return kAvx512Training;
  if (isa == Isa::kAvx2) return kAvx2Training;
#endif
  return kPortableTraining;
}

}  // namespace pace
