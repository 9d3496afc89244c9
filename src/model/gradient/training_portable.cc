#include "model/cpu/vec_portable.h"
#include "model/gradient/training_levels.h"
#include "model/gradient/training_table.h"

namespace pace {

constinit const TrainingKernels kPortableTraining = TrainingTable<Portable>();

}  // namespace pace
