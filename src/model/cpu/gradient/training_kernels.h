// TrainingKernels: the inner loops of training on the CPU, once per instruction
// set; forward passes, and gradients by hand.
//
// A kernel works on one thread's share: raw pointers and sizes in, no checks, no
// allocation. Elements are float, or bf16 as its bits; arithmetic is float32,
// and a bf16 result is rounded once. All levels agree to the bit.
// Thread-safety: pure functions of their arguments.
#ifndef PACE_MODEL_CPU_GRADIENT_TRAINING_KERNELS_H_
#define PACE_MODEL_CPU_GRADIENT_TRAINING_KERNELS_H_

#include <cstdint>
#include <type_traits>

#include "model/cpu/kernels/isa.h"

namespace pace {

struct TrainingKernels {
  template <typename T>
  struct Of {
    // RMS norm of rows of n: y = weight x / sqrt(mean(x^2) + epsilon).
    void (*norm)(const T* x, const float* weight, float epsilon, int64_t num_rows, int64_t n, T* y);
    // dx of rows, and dw += their part in the gradient of the weight.
    void (*norm_gradient)(const T* g, const T* x, const float* weight, float epsilon,
                          int64_t num_rows, int64_t n, T* dx, float* dw);

    // y = silu(gate) * up, of rows of n gates and then n ups.
    void (*gated)(const T* gate_up, int64_t num_rows, int64_t n, T* y);
    void (*gated_gradient)(const T* g, const T* gate_up, int64_t num_rows, int64_t n, T* d_gate_up);

    // Panels of a product's right side (model/cpu/kernels.h) from rows of `width`
    // elements: each row an output, or each row an input. What rounding up adds
    // is 0. Depth is `width` or `num_rows`, for bf16 rounded up to kDepthStep.
    void (*pack_outputs)(const T* rows, int64_t stride, int64_t num_rows, int64_t width, T* panels);
    void (*pack_inputs)(const T* rows, int64_t stride, int64_t num_rows, int64_t width, T* panels);
    // out[j][i] = rows[i][j]. REQUIRES: num_rows and width multiples of 16
    void (*transpose)(const T* rows, int64_t stride, int64_t num_rows, int64_t width, T* out,
                      int64_t out_stride);

    // Gradient of a row of logits: p (a + b logit) with p = exp(scale logit - log_sum).
    void (*logit_gradient)(const float* logits, int64_t n, float scale, float log_sum, float a,
                           float b, T* out);
  };
  Of<float> f32;
  Of<uint16_t> bf16;

  // Attention, of one row: scores s become p = exp(scale s - log_sum), and the
  // gradient of p becomes that of s, scale p (dp - delta).
  void (*score_gradient)(float* s, float* dp, int64_t n, float scale, float log_sum, float delta);
  // Sums of e and of e x, with e = exp((x - shift) * scale).
  struct Moments {
    float sum = 0;
    float weighted = 0;
  };
  Moments (*exp_moments)(const float* x, int64_t n, float shift, float scale);
  float (*dot)(const float* x, const float* y, int64_t n);

  template <typename T>
  const Of<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return bf16;
    }
  }
};

// REQUIRES: one of IsaLevels()
const TrainingKernels& TrainingKernelsOf(Isa isa);

// The kernels of each level; TrainingKernelsOf chooses.
extern const TrainingKernels kPortableTraining;
#if defined(__x86_64__)
extern const TrainingKernels kAvx2Training;
extern const TrainingKernels kAvx512Training;
#elif defined(__aarch64__)
extern const TrainingKernels kNeonTraining;
#endif

}  // namespace pace

#endif  // PACE_MODEL_CPU_GRADIENT_TRAINING_KERNELS_H_
