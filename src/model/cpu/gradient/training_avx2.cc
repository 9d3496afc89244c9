#include "model/cpu/gradient/training_kernels.h"

#if defined(__x86_64__)
#include "model/cpu/gradient/training_table.h"
#include "model/cpu/kernels/vec_avx2.h"

namespace pace {

constinit const TrainingKernels kAvx2Training = TrainingTable<Avx2>();

}  // namespace pace
#endif
