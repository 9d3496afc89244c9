#include "model/cpu/kernels/kernel_table.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/kernels/vec_portable.h"

namespace pace {

constinit const Kernels kPortableKernels = KernelTable<Portable>();

}  // namespace pace
