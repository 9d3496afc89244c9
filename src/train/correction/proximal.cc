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
#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "train/correction/corrections.h"

namespace pace {
namespace {

// Keeps the logarithm of a vanishing probability finite; AReaL's constant.
constexpr double kTinyProbability = 1e-10;

double Alpha(int64_t sampled, int64_t proximal, int64_t trained) {
  if (sampled < 0 || trained <= sampled) return 0;
  const double alpha =
      static_cast<double>(proximal - sampled) / static_cast<double>(trained - sampled);
  return std::clamp(alpha, 0.0, 1.0);
}

}  // namespace

std::optional<ProximalEstimate> ProximalEstimateFromName(std::string_view name) {
  if (name == "loglinear") return ProximalEstimate::kLogLinear;
  if (name == "linear") return ProximalEstimate::kLinear;
  if (name == "rollout") return ProximalEstimate::kRollout;
  return std::nullopt;
}

std::vector<double> EstimateProximal(ProximalEstimate method,
                                     std::span<const double> rollout_logprobs,
                                     std::span<const double> logprobs,
                                     std::span<const int64_t> versions, int64_t proximal_version,
                                     int64_t trained_version) {
  PACE_CHECK(rollout_logprobs.size() == logprobs.size() && logprobs.size() == versions.size(),
             "lengths differ");
  std::vector<double> proximal(rollout_logprobs.begin(), rollout_logprobs.end());
  if (method == ProximalEstimate::kRollout) return proximal;
  for (size_t token = 0; token < proximal.size(); ++token) {
    const double alpha = Alpha(versions[token], proximal_version, trained_version);
    if (method == ProximalEstimate::kLogLinear) {
      proximal[token] += alpha * (logprobs[token] - rollout_logprobs[token]);
    } else {
      proximal[token] = std::log((1 - alpha) * std::exp(rollout_logprobs[token]) +
                                 alpha * std::exp(logprobs[token]) + kTinyProbability);
    }
  }
  return proximal;
}

}  // namespace pace
