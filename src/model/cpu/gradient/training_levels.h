// The training kernels of each level, by name; TrainingKernelsOf chooses.
#ifndef PACE_MODEL_CPU_GRADIENT_TRAINING_LEVELS_H_
#define PACE_MODEL_CPU_GRADIENT_TRAINING_LEVELS_H_

#include "model/cpu/gradient/training_kernels.h"

namespace pace {

extern const TrainingKernels kPortableTraining;
#if defined(__x86_64__)
extern const TrainingKernels kAvx2Training;
extern const TrainingKernels kAvx512Training;
#elif defined(__aarch64__)
extern const TrainingKernels kNeonTraining;
#endif

}  // namespace pace

#endif  // PACE_MODEL_CPU_GRADIENT_TRAINING_LEVELS_H_
