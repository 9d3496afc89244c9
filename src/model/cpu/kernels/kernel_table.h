// The kernels of one level as a table: a template over that level.
#ifndef PACE_MODEL_CPU_KERNELS_KERNEL_TABLE_H_
#define PACE_MODEL_CPU_KERNELS_KERNEL_TABLE_H_

#include "model/cpu/kernels/attention_impl.h"
#include "model/cpu/kernels/gemm_bf16_impl.h"
#include "model/cpu/kernels/gemm_impl.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/kernels/row_impl.h"

namespace pace {

template <typename V>
constexpr Kernels KernelTable() {
  return {.gemm_f32 = &GemmF32<V>,
          .gemm_bf16 = &GemmBf16<V>,
          .attend = &Attend<V>,
          .rms_norm = &RmsNorm<V>,
          .rotate = &Rotate<V>,
          .add_scaled = &AddScaled<V>,
          .to_bf16 = &ToBf16<V>,
          .from_bf16 = &FromBf16<V>,
          .max_of = &MaxOf<V>,
          .exp_sum = &ExpSum<V>,
          .sum_at_least = &SumAtLeast<V>,
          .find_at_least = &FindAtLeast<V>};
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_KERNEL_TABLE_H_
