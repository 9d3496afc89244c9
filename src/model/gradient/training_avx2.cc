#include "model/gradient/training_levels.h"

#if defined(__x86_64__)
#include "model/cpu/vec_avx2.h"
#include "model/gradient/training_table.h"

namespace pace {

constinit const TrainingKernels kAvx2Training = TrainingTable<Avx2>();

}  // namespace pace
#endif
