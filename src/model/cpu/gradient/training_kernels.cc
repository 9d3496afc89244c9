#include "model/cpu/gradient/training_kernels.h"

#include "core/check.h"

namespace pace {

const TrainingKernels& TrainingKernelsOf(Isa isa) {
  PACE_CHECK(HasIsa(isa), "this machine has no ", IsaName(isa));
#if defined(__x86_64__)
  if (isa == Isa::kAvx512 || isa == Isa::kAmx) return kAvx512Training;
  if (isa == Isa::kAvx2) return kAvx2Training;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon || isa == Isa::kNeonBf16) return kNeonTraining;
#endif
  return kPortableTraining;
}

}  // namespace pace
