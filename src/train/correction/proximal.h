// The proximal policy without its forward pass.
//
// Decoupled PPO measures ratios against the policy just before a step's
// updates. Recomputing its log-probs costs one forward pass; these estimates
// interpolate between the policy that sampled a token (version v) and the one
// being trained (version v_theta), of which the proximal version v_prox lies in
// between:
//
//   alpha      = (v_prox - v) / (v_theta - v), 0 where v_theta <= v
//   loglinear  log pi_rollout + alpha (log pi_theta - log pi_rollout)
//   linear     log((1 - alpha) pi_rollout + alpha pi_theta + 1e-10)
//   rollout    log pi_rollout
//
// Source: A-3PO in AReaL, where v_prox = v_theta - 1. A negative version marks
// a token that no policy sampled: alpha is 0.
#ifndef PACE_TRAIN_CORRECTION_PROXIMAL_H_
#define PACE_TRAIN_CORRECTION_PROXIMAL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pace {

enum class ProximalEstimate { kLogLinear, kLinear, kRollout };

// "loglinear", "linear", "rollout"; nothing for another text.
std::optional<ProximalEstimate> ProximalEstimateFromName(std::string_view name);

// REQUIRES: equal lengths
std::vector<double> EstimateProximal(ProximalEstimate method,
                                     std::span<const double> rollout_logprobs,
                                     std::span<const double> logprobs,
                                     std::span<const int64_t> versions, int64_t proximal_version,
                                     int64_t trained_version);

}  // namespace pace

#endif  // PACE_TRAIN_CORRECTION_PROXIMAL_H_
