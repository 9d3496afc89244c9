// What becomes of a GEMM's sums: a template over a vector level.
#ifndef PACE_MODEL_CPU_KERNELS_GEMM_EPILOGUE_H_
#define PACE_MODEL_CPU_KERNELS_GEMM_EPILOGUE_H_

#include <cstdint>

#include "model/cpu/kernels/kernels.h"
#include "model/cpu/kernels/vec_math.h"

namespace pace {

// The 32 outputs of one row and panel.
template <typename V>
inline void FinishPanel(const GemmTask& task, int64_t row, int64_t panel, typename V::Vec low,
                        typename V::Vec high) {
  if (task.bias != nullptr) {
    low = V::Add(low, V::Load(task.bias + panel * kPanelWidth));
    high = V::Add(high, V::Load(task.bias + panel * kPanelWidth + kLanes));
  }
  if (task.epilogue == Epilogue::kGated) {
    const int64_t at = row * task.out_stride + panel * kLanes;
    const auto gated = V::Mul(Silu<V>(low), high);
    if (task.out_is_bf16) {
      V::StoreBf16(static_cast<uint16_t*>(task.out) + at, gated);
    } else {
      V::Store(static_cast<float*>(task.out) + at, gated);
    }
    return;
  }
  float* const out = static_cast<float*>(task.out) + row * task.out_stride + panel * kPanelWidth;
  if (task.epilogue == Epilogue::kAdd) {
    low = V::Add(V::Load(out), low);
    high = V::Add(V::Load(out + kLanes), high);
  }
  V::Store(out, low);
  V::Store(out + kLanes, high);
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_GEMM_EPILOGUE_H_
