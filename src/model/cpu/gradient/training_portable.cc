#include "model/cpu/gradient/training_kernels.h"
#include "model/cpu/gradient/training_table.h"
#include "model/cpu/kernels/vec_portable.h"

namespace pace {

constinit const TrainingKernels kPortableTraining = TrainingTable<Portable>();

}  // namespace pace
