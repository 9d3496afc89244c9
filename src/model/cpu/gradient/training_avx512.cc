#include "model/cpu/gradient/training_kernels.h"

#if defined(__x86_64__)
#include "model/cpu/gradient/training_table.h"
#include "model/cpu/kernels/vec_avx512.h"

namespace pace {

constinit const TrainingKernels kAvx512Training = TrainingTable<Avx512>();

}  // namespace pace
#endif
