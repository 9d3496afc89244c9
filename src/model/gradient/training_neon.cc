#include "model/gradient/training_levels.h"

#if defined(__aarch64__)
#include "model/cpu/vec_neon.h"
#include "model/gradient/training_table.h"

namespace pace {

constinit const TrainingKernels kNeonTraining = TrainingTable<Neon>();

}  // namespace pace
#endif
