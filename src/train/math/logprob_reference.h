// Log-prob and entropy of a token from its logits, plainly, with gradients:
// what the fast kernels must agree with.
//
//   p = softmax(z / temperature)
//   log-prob = log p_target          entropy H = -sum_k p_k log p_k
//   d log-prob / dz_k = (1[k = target] - p_k) / temperature
//   d H / dz_k        = -p_k (log p_k + H) / temperature
//
// Computed relative to the largest logit, so that no logit overflows.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_MATH_LOGPROB_REFERENCE_H_
#define PACE_TRAIN_MATH_LOGPROB_REFERENCE_H_

#include <cstddef>
#include <span>

namespace pace {

struct TokenScore {
  double logprob = 0;
  double entropy = 0;
};

// REQUIRES: target < logits.size(), temperature > 0
TokenScore ScoreToken(std::span<const double> logits, size_t target, double temperature);

// Adds d (logprob_gradient log-prob + entropy_gradient H) / d logits.
// REQUIRES: as above; gradient has the length of logits
void AddLogitGradient(std::span<const double> logits, size_t target, double temperature,
                      double logprob_gradient, double entropy_gradient, std::span<double> gradient);

}  // namespace pace

#endif  // PACE_TRAIN_MATH_LOGPROB_REFERENCE_H_
