#include "model/cpu/kernels/kernels.h"

#if defined(__x86_64__)
#include "model/cpu/kernels/kernel_table.h"
#include "model/cpu/kernels/vec_avx2.h"

namespace pace {

constinit const Kernels kAvx2Kernels = KernelTable<Avx2>();

}  // namespace pace
#endif
