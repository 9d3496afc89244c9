#include "model/cpu/kernels/kernels.h"

#if defined(__x86_64__)
#include "model/cpu/kernels/kernel_table.h"
#include "model/cpu/kernels/vec_avx512.h"

namespace pace {

constinit const Kernels kAvx512Kernels = KernelTable<Avx512>();

}  // namespace pace
#endif
