#include "model/cpu/vec_portable.h"
#include "model/cpu_training/training_levels.h"
#include "model/cpu_training/training_table.h"

namespace pace {

constinit const TrainingKernels kPortableTraining = TrainingTable<Portable>();

}  // namespace pace
