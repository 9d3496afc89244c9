// Clip-Cov: PPO, with some tokens of high covariance left out at random.
//
// Candidates are the policy tokens with cov_low < cov_t < cov_high that PPO does
// not already clip; max(1, fraction * all policy tokens) of them lose their loss.
// Source: arXiv 2505.22617, its constants. Peers draw from torch's generator;
// we order candidates by random bits of (seed, log-prob), so that the choice
// depends on neither order nor machine.
#include <algorithm>
#include <bit>

#include "core/random.h"
#include "train/loss/token_term.h"

namespace pace {
namespace {

// Separates this use of a seed from others.
constexpr uint32_t kStream = 0x636f76;

// 1 on the tokens left out.
std::vector<uint8_t> LeftOut(const TokenBatch& batch, const ClipCovOptions& options) {
  const std::span<const double> reference = batch.reference_logprobs();
  const std::vector<double> covariances = TokenCovariances(batch);
  const CounterRandom random(static_cast<uint64_t>(options.seed), kStream);
  std::vector<std::pair<uint64_t, size_t>> candidates;
  int64_t num_policy_tokens = 0;
  for (size_t token = 0; token < batch.num_tokens(); ++token) {
    if (!batch.is_policy_token(token)) continue;
    ++num_policy_tokens;
    const BoundedRatio ratio(batch.frozen(token) - reference[token], kUnbounded);
    const bool clipped = ClippedTerm(batch.advantages[token], ratio, 1 - options.clip_low,
                                     1 + options.clip_high, std::nullopt)
                             .clipped;
    if (clipped || covariances[token] <= options.cov_low ||
        covariances[token] >= options.cov_high) {
      continue;
    }
    candidates.emplace_back(random.Bits(std::bit_cast<uint64_t>(batch.frozen(token))), token);
  }
  std::sort(candidates.begin(), candidates.end());
  const double wanted = options.fraction * static_cast<double>(num_policy_tokens);
  const size_t count =
      std::min(candidates.size(), std::max<size_t>(static_cast<size_t>(wanted), 1));
  std::vector<uint8_t> left_out(batch.num_tokens(), 0);
  for (size_t i = 0; i < count; ++i) left_out[candidates[i].second] = 1;
  return left_out;
}

}  // namespace

PolicyLoss ClipCovLoss(const ClipCovOptions& options) {
  const auto compute = [options](const TokenBatch& batch, const ReductionWeights& weights,
                                 LossResult& out) {
    const std::vector<uint8_t> left_out = LeftOut(batch, options);
    const std::span<const double> reference = batch.reference_logprobs();
    const auto term_of = [&](size_t token) {
      const BoundedRatio ratio(batch.logprobs[token] - reference[token], kUnbounded);
      TokenTerm term = ClippedTerm(batch.advantages[token], ratio, 1 - options.clip_low,
                                   1 + options.clip_high, std::nullopt);
      term.clipped = left_out[token] != 0;
      if (term.clipped) term.value = term.slope = 0;
      return term;
    };
    const TokenSums sums = SumTokens(batch, weights, term_of, out);
    out.metrics = {sums.Kl(), sums.ClipFraction()};
    return Status::Ok();
  };
  return PolicyLoss(compute, {.scope = LossScope::kMinibatch});
}

}  // namespace pace
