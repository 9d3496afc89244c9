#include "model/gradient/training_levels.h"

#if defined(__x86_64__)
#include "model/cpu/vec_avx512.h"
#include "model/gradient/training_table.h"

namespace pace {

constinit const TrainingKernels kAvx512Training = TrainingTable<Avx512>();

}  // namespace pace
#endif
