#include "model/cpu/gradient/training_kernels.h"

#if defined(__aarch64__)
#include "model/cpu/gradient/training_table.h"
#include "model/cpu/kernels/vec_neon.h"

namespace pace {

constinit const TrainingKernels kNeonTraining = TrainingTable<Neon>();

}  // namespace pace
#endif
