// Estimators of KL(pi_theta || pi_reference) from sampled tokens.
//
// With x = log pi_theta - log pi_reference of a token:
//
//   k1    x                      unbiased, large variance
//   k2    x^2 / 2                biased; its gradient is right on average
//   k3    e^-x - 1 + x           unbiased, never negative
//   abs   |x|
//
// The estimators come from joschu.net/blog/kl-approx.html. Peers bound them:
// verl cuts -x of k3 to +-20 and its value to +-10, with zero gradient there;
// AReaL cuts every value to +-10 where asked. `straight_through` ("k3+") keeps
// the value and takes the gradient of k2. Defaults are verl's.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_KL_PENALTY_H_
#define PACE_TRAIN_KL_PENALTY_H_

#include <optional>
#include <string_view>

#include "core/status.h"

namespace pace {

enum class KlEstimator { kK1, kK2, kK3, kAbsolute };

struct KlPenaltyOptions {
  KlEstimator estimator = KlEstimator::kK3;
  // The estimator's value with the gradient of k2.
  bool straight_through = false;
  // Bound of |x| inside k3; none: no bound.
  std::optional<double> max_log_ratio = 20;
  // Bound of |k3|; none: no bound.
  std::optional<double> max_value = 10;
  // Whether max_value bounds all estimators, as in AReaL.
  bool bound_all = false;

  [[nodiscard]] Status Validate() const;
};

// By verl's names: kl and k1, mse and k2, low_var_kl and k3, abs, each also with
// a + behind it (straight through). Nothing for another text.
std::optional<KlPenaltyOptions> KlPenaltyFromName(std::string_view name);

struct KlTerm {
  double value = 0;
  double slope = 0;  // in log pi_theta
};

KlTerm KlPenalty(const KlPenaltyOptions& options, double logprob, double reference_logprob);

}  // namespace pace

#endif  // PACE_TRAIN_KL_PENALTY_H_
