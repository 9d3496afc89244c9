#include "train/loss/kl_cov.h"

#include <algorithm>

#include "train/loss/clip_rules.h"
#include "train/loss/covariance.h"
#include "train/loss/token_term.h"
#include "train/sort_order.h"

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

void KlCovOptions::Read(OptionReader& reader) {
  reader.Real("fraction", fraction);
  reader.Real("kl_coefficient", kl_coefficient);
}

Status KlCovOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckFraction("kl_cov", "fraction", fraction));
  return CheckNotNegative("kl_cov", "kl_coefficient", kl_coefficient);
}

Status KlCovLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                          LossResult& out) const {
  const std::vector<uint8_t> penalised = Largest(batch, options_.fraction);
  const std::span<const double> reference = batch.reference_logprobs();
  MeanOf absolute;
  const auto term_of = [&](size_t token) {
    TokenTerm term{.log_ratio = batch.logprobs[token] - reference[token]};
    term.value = -batch.advantages[token] * std::exp(term.log_ratio);
    term.slope = term.value;
    if (penalised[token] != 0) {
      term.value += options_.kl_coefficient * std::abs(term.log_ratio);
      if (term.log_ratio > 0) term.slope += options_.kl_coefficient;
      if (term.log_ratio < 0) term.slope -= options_.kl_coefficient;
    }
    if (batch.is_policy_token(token)) absolute.Add(std::abs(term.log_ratio));
    return term;
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl(), absolute.As("train/kl_abs")};
  return Status::Ok();
}

}  // namespace pace
