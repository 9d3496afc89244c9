#include "train/kl_penalty.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace pace {
namespace {

constexpr std::array<std::pair<std::string_view, KlEstimator>, 7> kNames = {{
    {"kl", KlEstimator::kK1},
    {"k1", KlEstimator::kK1},
    {"mse", KlEstimator::kK2},
    {"k2", KlEstimator::kK2},
    {"low_var_kl", KlEstimator::kK3},
    {"k3", KlEstimator::kK3},
    {"abs", KlEstimator::kAbsolute},
}};

// A bound of magnitude; beyond it the slope is 0.
KlTerm Bounded(KlTerm term, double bound) {
  if (std::abs(term.value) <= bound) return term;
  return {.value = std::clamp(term.value, -bound, bound), .slope = 0};
}

KlTerm K3(double x, const KlPenaltyOptions& options) {
  const double bound = options.max_log_ratio.value_or(std::numeric_limits<double>::infinity());
  const double inside = std::clamp(x, -bound, bound);
  const double slope = inside == x ? -std::expm1(-inside) : 0;
  return {.value = std::expm1(-inside) + inside, .slope = slope};
}

}  // namespace

Status KlPenaltyOptions::Validate() const {
  if (max_log_ratio.has_value() && !(*max_log_ratio > 0)) {
    return InvalidArgument("kl.max_log_ratio = ", *max_log_ratio, ": must be positive");
  }
  if (max_value.has_value() && !(*max_value > 0)) {
    return InvalidArgument("kl.max_value = ", *max_value, ": must be positive");
  }
  return Status::Ok();
}

std::optional<KlPenaltyOptions> KlPenaltyFromName(std::string_view name) {
  KlPenaltyOptions options;
  options.straight_through = name.ends_with('+');
  if (options.straight_through) name.remove_suffix(1);
  for (const auto& [known, estimator] : kNames) {
    if (known != name) continue;
    options.estimator = estimator;
    return options;
  }
  return std::nullopt;
}

KlTerm KlPenalty(const KlPenaltyOptions& options, double logprob, double reference_logprob) {
  const double x = logprob - reference_logprob;
  KlTerm term;
  switch (options.estimator) {
    case KlEstimator::kK1:
      term = {.value = x, .slope = 1};
      break;
    case KlEstimator::kK2:
      term = {.value = x * x / 2, .slope = x};
      break;
    case KlEstimator::kK3:
      term = K3(x, options);
      break;
    case KlEstimator::kAbsolute:
      term = {.value = std::abs(x), .slope = x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0};
      break;
  }
  const bool bounds = options.bound_all || options.estimator == KlEstimator::kK3;
  if (bounds && options.max_value.has_value()) term = Bounded(term, *options.max_value);
  if (options.straight_through) term.slope = x;
  return term;
}

}  // namespace pace
