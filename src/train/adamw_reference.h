// AdamW, plainly: what the fast optimizer must agree with.
//
// One update, with gradient g, moments m and v, update number k = 1, 2, ...:
//
//   w -= lr weight_decay w
//   m  = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
//   w -= lr / (1 - beta1^k) m / (sqrt(v) / sqrt(1 - beta2^k) + epsilon)
//
// Source: arXiv 1711.05101, in the order of torch.optim.AdamW. Real is the type
// of parameters and moments; scalars are doubles, as in torch.
//
// Thread-safety: none.
#ifndef PACE_TRAIN_ADAMW_REFERENCE_H_
#define PACE_TRAIN_ADAMW_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/check.h"
#include "core/status.h"

namespace pace {

struct AdamWReferenceOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // Share of a weight that lr 1 would remove.
  double weight_decay = 0.01;

  [[nodiscard]] Status Validate() const {
    if (!(beta1 >= 0 && beta1 < 1) || !(beta2 >= 0 && beta2 < 1)) {
      return InvalidArgument("adamw.beta1, beta2 = ", beta1, ", ", beta2, ": must be in [0, 1)");
    }
    if (!(epsilon > 0)) return InvalidArgument("adamw.epsilon = ", epsilon, ": must be positive");
    if (weight_decay >= 0) return Status::Ok();
    return InvalidArgument("adamw.weight_decay = ", weight_decay, ": must be >= 0");
  }
};

// The learning rate of update `update` = 0, 1, ...: rises linearly from 0 over
// `num_warmup` updates, then stays. The first update of a warm-up changes
// nothing but the moments, as in verl.
inline double WarmupLearningRate(double learning_rate, int64_t update, int64_t num_warmup) {
  if (update >= num_warmup) return learning_rate;
  return learning_rate * static_cast<double>(update) / static_cast<double>(num_warmup);
}

// The Euclidean norm of all gradients together.
template <typename Real>
double GradientNorm(std::span<const std::vector<Real>> gradients) {
  double sum = 0;
  for (const std::vector<Real>& gradient : gradients) {
    for (const Real g : gradient) sum += static_cast<double>(g) * static_cast<double>(g);
  }
  return std::sqrt(sum);
}

// What clipping to max_norm multiplies gradients by; at most 1.
inline double ClipFactor(double norm, double max_norm) {
  return std::min(1.0, max_norm / (norm + 1e-6));
}

template <typename Real>
class AdamWReference {
 public:
  // The moments of parameters of these shapes. REQUIRES: options.Validate().ok()
  AdamWReference(const AdamWReferenceOptions& options,
                 std::span<const std::vector<Real>> parameters)
      : options_(options) {
    PACE_CHECK(options.Validate().ok(), "validate first");
    for (const std::vector<Real>& tensor : parameters) {
      first_moments_.emplace_back(tensor.size(), Real{0});
      second_moments_.emplace_back(tensor.size(), Real{0});
    }
  }

  // One update in place. REQUIRES: the shapes of the constructor
  void Update(double learning_rate, std::span<const std::vector<Real>> gradients,
              std::span<std::vector<Real>> parameters) {
    ++num_updates_;
    const auto count = static_cast<double>(num_updates_);
    const double correction1 = 1 - std::pow(options_.beta1, count);
    const double correction2 = std::sqrt(1 - std::pow(options_.beta2, count));
    const auto decay = static_cast<Real>(1 - learning_rate * options_.weight_decay);
    const auto step = static_cast<Real>(learning_rate / correction1);
    for (size_t tensor = 0; tensor < parameters.size(); ++tensor) {
      for (size_t i = 0; i < parameters[tensor].size(); ++i) {
        const Real g = gradients[tensor][i];
        Real& m = first_moments_[tensor][i];
        Real& v = second_moments_[tensor][i];
        Real& w = parameters[tensor][i];
        m += static_cast<Real>(1 - options_.beta1) * (g - m);
        v = static_cast<Real>(options_.beta2) * v + static_cast<Real>(1 - options_.beta2) * g * g;
        const Real denominator =
            std::sqrt(v) / static_cast<Real>(correction2) + static_cast<Real>(options_.epsilon);
        w = w * decay - step * (m / denominator);
      }
    }
  }

  const std::vector<std::vector<Real>>& first_moments() const { return first_moments_; }
  const std::vector<std::vector<Real>>& second_moments() const { return second_moments_; }

 private:
  const AdamWReferenceOptions options_;
  int64_t num_updates_ = 0;
  std::vector<std::vector<Real>> first_moments_;
  std::vector<std::vector<Real>> second_moments_;
};

}  // namespace pace

#endif  // PACE_TRAIN_ADAMW_REFERENCE_H_
