#include "model/cpu/kernel_table.h"
#include "model/cpu/levels.h"
#include "model/cpu/vec_portable.h"

namespace pace {

constinit const Kernels kPortableKernels = KernelTable<Portable>();

}  // namespace pace
