#include "model/cpu/levels.h"

#if defined(__x86_64__)
#include "model/cpu/kernel_table.h"
#include "model/cpu/vec_avx512.h"

namespace pace {

constinit const Kernels kAvx512Kernels = KernelTable<Avx512>();

}  // namespace pace
#endif
