#include "model/row_functions.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <cstdint>

// The loops below, compiled once for each of these and chosen at start.
#define PACE_CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))

namespace pace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Independent sums, so that the compiler may keep them in one register.
constexpr int64_t kLanes = 16;

at::Tensor Wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

bool HasLoops(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat && x.device().is_cpu();
}

PACE_CLONES void NormForward(const float* x, const float* weight, float epsilon, int64_t num_rows,
                             int64_t size, float* y, float* scales) {
  for (int64_t row = 0; row < num_rows; ++row, x += size, y += size) {
    float sums[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * x[i + lane];
    }
    for (; i < size; ++i) sums[0] += x[i] * x[i];
    float sum = 0;
    for (const float part : sums) sum += part;
    const float scale = 1.0F / std::sqrt(sum / static_cast<float>(size) + epsilon);
    scales[row] = scale;
    for (int64_t k = 0; k < size; ++k) y[k] = weight[k] * (x[k] * scale);
  }
}

// dx = scale (g w - x scale^2 mean(g w x)), dw += g x scale.
PACE_CLONES void NormBackward(const float* g, const float* x, const float* weight,
                              const float* scales, int64_t num_rows, int64_t size, float* dx,
                              float* dw) {
  for (int64_t row = 0; row < num_rows; ++row, g += size, x += size, dx += size) {
    const float scale = scales[row];
    float sums[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        sums[lane] += g[i + lane] * weight[i + lane] * x[i + lane];
      }
    }
    for (; i < size; ++i) sums[0] += g[i] * weight[i] * x[i];
    float sum = 0;
    for (const float part : sums) sum += part;
    const float pull = sum / static_cast<float>(size) * scale * scale * scale;
    for (int64_t k = 0; k < size; ++k) {
      dx[k] = scale * (g[k] * weight[k]) - pull * x[k];
      dw[k] += g[k] * (x[k] * scale);
    }
  }
}

// `sign` is 1 forward and -1 backward, where the rotation turns back.
PACE_CLONES void Rotation(const float* x, const float* cos, const float* sin, float sign,
                          int64_t num_rows, int64_t num_heads, int64_t half, float* y) {
  for (int64_t row = 0; row < num_rows; ++row, cos += half, sin += half) {
    for (int64_t head = 0; head < num_heads; ++head, x += 2 * half, y += 2 * half) {
      for (int64_t i = 0; i < half; ++i) {
        const float a = x[i];
        const float b = x[half + i];
        const float s = sign * sin[i];
        y[i] = a * cos[i] - b * s;
        y[half + i] = b * cos[i] + a * s;
      }
    }
  }
}

class RmsNormFunction : public torch::autograd::Function<RmsNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given,
                            const at::Tensor& given_weight, double epsilon) {
    const at::Tensor x = given.contiguous();
    const at::Tensor weight = given_weight.contiguous();
    const int64_t size = x.size(-1);
    const int64_t num_rows = x.numel() / size;
    const at::Tensor y = at::empty_like(x);
    const at::Tensor scales = at::empty({num_rows}, x.options());
    NormForward(x.data_ptr<float>(), weight.data_ptr<float>(), static_cast<float>(epsilon),
                num_rows, size, y.data_ptr<float>(), scales.data_ptr<float>());
    context->save_for_backward({x, weight, scales});
    return y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor g = gradients[0].contiguous();
    const at::Tensor& x = saved[0];
    const int64_t size = x.size(-1);
    const at::Tensor dx = at::empty_like(x);
    const at::Tensor dw = at::zeros_like(saved[1]);
    NormBackward(g.data_ptr<float>(), x.data_ptr<float>(), saved[1].data_ptr<float>(),
                 saved[2].data_ptr<float>(), x.numel() / size, size, dx.data_ptr<float>(),
                 dw.data_ptr<float>());
    return {dx, dw, at::Tensor()};
  }
};

at::Tensor Turn(const at::Tensor& given, const at::Tensor& cos, const at::Tensor& sin, float sign) {
  const at::Tensor x = given.contiguous();
  const at::Tensor y = at::empty_like(x);
  Rotation(x.data_ptr<float>(), cos.data_ptr<float>(), sin.data_ptr<float>(), sign, x.size(0),
           x.size(1), x.size(2) / 2, y.data_ptr<float>());
  return y;
}

class RotateFunction : public torch::autograd::Function<RotateFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return Turn(x, cos, sin, 1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    return {Turn(gradients[0], saved[0], saved[1], -1), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor ComposedRmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const at::Tensor wide = Wide(x);
  const at::Tensor scale = at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + epsilon);
  return weight.to(x.scalar_type()) * (wide * scale).to(x.scalar_type());
}

at::Tensor ComposedRotation(const at::Tensor& x_THD, const at::Tensor& cos_T1D,
                            const at::Tensor& sin_T1D) {
  const std::vector<at::Tensor> halves = Wide(x_THD).chunk(2, -1);
  const at::Tensor turned = at::cat(
      {halves[0] * cos_T1D - halves[1] * sin_T1D, halves[1] * cos_T1D + halves[0] * sin_T1D}, -1);
  return turned.to(x_THD.scalar_type());
}

at::Tensor RmsNormRows(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  if (!HasLoops(x) || !HasLoops(weight)) return ComposedRmsNorm(x, weight, epsilon);
  return RmsNormFunction::apply(x, weight, epsilon);
}

at::Tensor RotateRows(const at::Tensor& x_THD, const at::Tensor& cos_T1D,
                      const at::Tensor& sin_T1D) {
  if (!HasLoops(x_THD) || !HasLoops(cos_T1D)) return ComposedRotation(x_THD, cos_T1D, sin_T1D);
  return RotateFunction::apply(x_THD, cos_T1D.contiguous(), sin_T1D.contiguous());
}

}  // namespace pace
