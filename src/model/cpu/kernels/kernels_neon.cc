#include "model/cpu/kernels/kernels.h"

#if defined(__aarch64__)
#include "model/cpu/kernels/kernel_table.h"
#include "model/cpu/kernels/vec_neon.h"

namespace pace {

namespace {

constexpr Kernels WithGemm() {
  Kernels kernels = KernelTable<Neon>();
  kernels.gemm_f32 = &GemmNeonF32;
  kernels.gemm_bf16 = &GemmNeonBf16;
  return kernels;
}

}  // namespace

constinit const Kernels kNeonKernels = WithGemm();

}  // namespace pace
#endif
