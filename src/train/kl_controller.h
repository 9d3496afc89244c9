// The coefficient of a KL penalty, fixed or steered towards a target.
//
//   error = clip(KL / target - 1, -0.2, 0.2)
//   coefficient *= 1 + error * sequences / horizon
//
// once per step, after the step used it: a policy further away than the target
// pays more from the next step on. Source: arXiv 1909.08593, as in verl, where
// KL is the mean over sequences of each one's mean over its policy tokens.
//
// Thread-safety: a function of its arguments.
#ifndef PACE_TRAIN_KL_CONTROLLER_H_
#define PACE_TRAIN_KL_CONTROLLER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pace {

struct KlControllerOptions {
  // 0: the coefficient stays.
  double target = 0;
  // Sequences over which an error of 1 would change the coefficient by itself.
  double horizon = 10000;
};

// The coefficient of the next step. A KL that is not finite changes nothing.
inline double NextKlCoefficient(double coefficient, double kl, int64_t num_sequences,
                                const KlControllerOptions& options) {
  if (options.target == 0 || !std::isfinite(kl)) return coefficient;
  const double error = std::clamp(kl / options.target - 1, -0.2, 0.2);
  const double factor = 1 + error * static_cast<double>(num_sequences) / options.horizon;
  // A batch larger than five horizons must not turn the penalty round.
  return coefficient * std::max(factor, 0.0);
}

}  // namespace pace

#endif  // PACE_TRAIN_KL_CONTROLLER_H_
