// The bf16 GEMM kernel without AMX, as a template over a vector level.
//
// In steps of 32 inputs, the even and the odd ones are two chains of fused
// multiply-adds from 0, whose sum is added to the output's. This is what an AMX
// tile does, so both agree.
#ifndef PACE_MODEL_CPU_KERNELS_GEMM_BF16_IMPL_H_
#define PACE_MODEL_CPU_KERNELS_GEMM_BF16_IMPL_H_

#include <cstdint>

#include "model/cpu/kernels/gemm_epilogue.h"
#include "model/cpu/kernels/kernels.h"

namespace pace {

// R rows by one panel of bf16 weights.
template <typename V, int R>
void TileBf16(const GemmTask& task, int64_t row, int64_t panel) {
  using Vec = typename V::Vec;
  const uint16_t* x = static_cast<const uint16_t*>(task.x) + row * task.x_stride;
  const uint16_t* w = static_cast<const uint16_t*>(task.panels) + panel * task.depth * kPanelWidth;
  const auto input = [&x, &task](int r, int64_t k) {
    return V::Broadcast(
        __builtin_bit_cast(float, static_cast<uint32_t>(x[r * task.x_stride + k]) << 16));
  };
  Vec sum[R][2];
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = V::Zero();
  for (int64_t k = 0; k < task.depth; k += kDepthStep) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Vec even_sum[R];
      Vec odd_sum[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) even_sum[r] = odd_sum[r] = V::Zero();
      for (int64_t pair = 0; pair < kDepthStep / 2; ++pair) {
        Vec even;
        Vec odd;
        V::LoadPairs(w, even, odd);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          even_sum[r] = V::Fma(input(r, k + 2 * pair), even, even_sum[r]);
          odd_sum[r] = V::Fma(input(r, k + 2 * pair + 1), odd, odd_sum[r]);
        }
        w += 2 * kLanes;
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        sum[r][half] = V::Add(sum[r][half], V::Add(even_sum[r], odd_sum[r]));
      }
    }
  }
  for (int r = 0; r < R; ++r) FinishPanel<V>(task, row + r, panel, sum[r][0], sum[r][1]);
}

template <typename V>
void GemmBf16(const GemmTask& task) {
  constexpr int kRows = V::kPairRows;
  for (int64_t panel = 0; panel < task.num_panels; ++panel) {
    int64_t row = 0;
    for (; row + kRows <= task.num_rows; row += kRows) TileBf16<V, kRows>(task, row, panel);
    for (; row < task.num_rows; ++row) TileBf16<V, 1>(task, row, panel);
  }
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_GEMM_BF16_IMPL_H_
