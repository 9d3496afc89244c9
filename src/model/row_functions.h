// The differentiable pieces of a layer that are worth one pass over memory.
//
// Composed from tensor operations each would read and write its rows many times.
// For float32 on the CPU they are loops of our own, forward and backward; for
// every other dtype and device, the composition. Tests hold one against the
// other.
// Thread-safety: as LibTorch's operations.
#ifndef PACE_MODEL_ROW_FUNCTIONS_H_
#define PACE_MODEL_ROW_FUNCTIONS_H_

#include <ATen/ATen.h>

namespace pace {

// weight * x / sqrt(mean(x^2) + epsilon) along the last dimension; sums are
// float32 at least, the result has the dtype of x.
at::Tensor RmsNormRows(const at::Tensor& x, const at::Tensor& weight, double epsilon);

// Rotary embedding: with (a, b) the halves of a head, (a cos - b sin, b cos + a sin).
// x_THD in any dtype, cos and sin [T, 1, D / 2] float32 (double for double).
at::Tensor RotateRows(const at::Tensor& x_THD, const at::Tensor& cos_T1D,
                      const at::Tensor& sin_T1D);

// The compositions.
at::Tensor ComposedRmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon);
at::Tensor ComposedRotation(const at::Tensor& x_THD, const at::Tensor& cos_T1D,
                            const at::Tensor& sin_T1D);

}  // namespace pace

#endif  // PACE_MODEL_ROW_FUNCTIONS_H_
