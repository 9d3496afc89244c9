#include "train/loss/clip_cov.h"

#include <algorithm>
#include <bit>

#include "core/random.h"
#include "train/loss/clip_rules.h"
#include "train/loss/covariance.h"
#include "train/loss/token_term.h"

namespace pace {
namespace {

// Separates this use of a seed from others.
constexpr uint32_t kStream = 0x636f76;

}  // namespace

void ClipCovOptions::Read(OptionReader& reader) {
  reader.Real("clip_low", clip_low);
  reader.Real("clip_high", clip_high);
  reader.Real("fraction", fraction);
  reader.Real("cov_low", cov_low);
  reader.Real("cov_high", cov_high);
  reader.Integer("seed", seed);
}

Status ClipCovOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckClipWidths("clip_cov", clip_low, clip_high));
  PACE_RETURN_IF_ERROR(CheckFraction("clip_cov", "fraction", fraction));
  if (cov_low < cov_high) return Status::Ok();
  return InvalidArgument("clip_cov.cov_low = ", cov_low, ": must be below cov_high = ", cov_high);
}

std::vector<uint8_t> ClipCovLoss::LeftOut(const TokenBatch& batch) const {
  const std::span<const double> reference = batch.reference_logprobs();
  const std::vector<double> covariances = TokenCovariances(batch);
  const CounterRandom random(static_cast<uint64_t>(options_.seed), kStream);
  std::vector<std::pair<uint64_t, size_t>> candidates;
  int64_t num_policy_tokens = 0;
  for (size_t token = 0; token < batch.num_tokens(); ++token) {
    if (!batch.is_policy_token(token)) continue;
    ++num_policy_tokens;
    const BoundedRatio ratio(batch.frozen(token) - reference[token], kUnbounded);
    const bool clipped = ClippedTerm(batch.advantages[token], ratio, 1 - options_.clip_low,
                                     1 + options_.clip_high, std::nullopt)
                             .clipped;
    if (clipped || covariances[token] <= options_.cov_low ||
        covariances[token] >= options_.cov_high) {
      continue;
    }
    candidates.emplace_back(random.Bits(std::bit_cast<uint64_t>(batch.frozen(token))), token);
  }
  std::sort(candidates.begin(), candidates.end());
  const double wanted = options_.fraction * static_cast<double>(num_policy_tokens);
  const size_t count =
      std::min(candidates.size(), std::max<size_t>(static_cast<size_t>(wanted), 1));
  std::vector<uint8_t> left_out(batch.num_tokens(), 0);
  for (size_t i = 0; i < count; ++i) left_out[candidates[i].second] = 1;
  return left_out;
}

Status ClipCovLoss::Compute(const TokenBatch& batch, const ReductionWeights& weights,
                            LossResult& out) const {
  const std::vector<uint8_t> left_out = LeftOut(batch);
  const std::span<const double> reference = batch.reference_logprobs();
  const auto term_of = [&](size_t token) {
    const BoundedRatio ratio(batch.logprobs[token] - reference[token], kUnbounded);
    TokenTerm term = ClippedTerm(batch.advantages[token], ratio, 1 - options_.clip_low,
                                 1 + options_.clip_high, std::nullopt);
    term.clipped = left_out[token] != 0;
    if (term.clipped) term.value = term.slope = 0;
    return term;
  };
  const TokenSums sums = SumTokens(batch, weights, term_of, out);
  out.metrics = {sums.Kl(), sums.ClipFraction()};
  return Status::Ok();
}

}  // namespace pace
