// The differentiable pieces of a layer that are worth one pass over memory.
//
// Composed from tensor operations each would read and write its rows many times.
// For float32 and bf16 they are kernels of our own, forward and backward: on the
// CPU those of gradient/, on a GPU those of cuda/. For all else, the composition.
// Tests hold one against the other.
// Thread-safety: as LibTorch's operations.
#ifndef PACE_MODEL_TORCH_ROW_FUNCTIONS_H_
#define PACE_MODEL_TORCH_ROW_FUNCTIONS_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "core/check.h"

namespace pace {

// The tensor as the element type of kernels: float, or uint16_t for bf16.
// REQUIRES: x is contiguous, of that element type, on the CPU
template <typename T>
T* DataOf(const at::Tensor& x) {
  PACE_CHECK(x.is_contiguous() && x.element_size() == sizeof(T), "a tensor of another kind");
  return static_cast<T*>(x.data_ptr());
}

// Calls body with a zero of x's element type. REQUIRES: float32 or bf16
template <typename Body>
void WithElements(const at::Tensor& x, const Body& body) {
  if (x.scalar_type() == at::kBFloat16) {
    body(uint16_t{0});
  } else {
    PACE_CHECK(x.scalar_type() == at::kFloat, "a tensor of another kind");
    body(0.0F);
  }
}

// Whether the CPU's kernels compute on such a tensor.
bool HasKernels(const at::Tensor& x);

// weight * x / sqrt(mean(x^2) + epsilon) along the last dimension; sums are
// float32 at least, the result has the dtype of x.
at::Tensor RmsNormRows(const at::Tensor& x, const at::Tensor& weight, double epsilon);

// The norm of x, and x itself for whatever else uses it: on a GPU, one pass computes the gradients
// of both and their sum.
struct NormedRows {
  at::Tensor norm;
  at::Tensor x;
};
NormedRows RmsNormBeside(const at::Tensor& x, const at::Tensor& weight, double epsilon);

// silu(gate) * up, where a row holds all gates and then all ups.
at::Tensor GatedRows(const at::Tensor& gate_up);

// The compositions.
at::Tensor ComposedRmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon);
at::Tensor ComposedGate(const at::Tensor& gate_up);

}  // namespace pace

#endif  // PACE_MODEL_TORCH_ROW_FUNCTIONS_H_
