// KL-Cov: the plain ratio, with a penalty on the tokens of highest covariance.
//
//   L_t = -A r                                       on all policy tokens
//       + kl_coefficient |log pi_theta - log pi_reference|
//                                                    on the top `fraction`
//
// At least one token carries the penalty. Source: arXiv 2505.22617.
#include <algorithm>

#include "train/loss/token_term.h"
#include "train/math/sort_order.h"

namespace pace {
namespace {

// 1 on the `fraction` of policy tokens whose covariance is largest.
std::vector<uint8_t> Largest(const TokenBatch& batch, double fraction) {
  const std::vector<double> covariances = TokenCovariances(batch);
  std::vector<size_t> order;
  for (size_t token = 0; token < batch.num_tokens(); ++token) {
    if (batch.is_policy_token(token)) order.push_back(token);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return LargerFirst({covariances[a], a}, {covariances[b], b});
  });
  const auto wanted = static_cast<size_t>(fraction * static_cast<double>(order.size()));
  std::vector<uint8_t> chosen(batch.num_tokens(), 0);
  for (size_t i = 0; i < std::min(order.size(), std::max<size_t>(wanted, 1)); ++i) {
    chosen[order[i]] = 1;
  }
  return chosen;
}

}  // namespace

PolicyLoss KlCovLoss(const KlCovOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const std::vector<uint8_t> penalised = Largest(batch, options.fraction);
    const std::span<const double> reference = batch.reference_logprobs();
    MeanOf absolute;
    const auto term_of = [&](size_t token) {
      TokenTerm term{.log_ratio = batch.logprobs[token] - reference[token]};
      term.value = -batch.advantages[token] * std::exp(term.log_ratio);
      term.slope = term.value;
      if (penalised[token] != 0) {
        term.value += options.kl_coefficient * std::abs(term.log_ratio);
        if (term.log_ratio > 0) term.slope += options.kl_coefficient;
        if (term.log_ratio < 0) term.slope -= options.kl_coefficient;
      }
      if (batch.is_policy_token(token)) absolute.Add(std::abs(term.log_ratio));
      return term;
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl(), absolute.As("train/kl_abs")};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.scope = LossScope::kMinibatch});
}

}  // namespace pace
