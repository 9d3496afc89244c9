// Tensors as the element types of kernels: float, or uint16_t for bf16.
#ifndef PACE_MODEL_TORCH_KERNEL_DATA_H_
#define PACE_MODEL_TORCH_KERNEL_DATA_H_

#include <ATen/ATen.h>

#include <cstdint>

#include "core/check.h"

namespace pace {

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

}  // namespace pace

#endif  // PACE_MODEL_TORCH_KERNEL_DATA_H_
