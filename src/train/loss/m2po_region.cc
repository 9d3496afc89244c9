#include "train/loss/m2po_region.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/math/sort_order.h"

namespace pace {
namespace {

// The published code's tolerance, here and there.
constexpr double kTiny = 1e-12;

struct Candidate {
  size_t token = 0;
  double squared = 0;
};

double SumOf(const std::vector<Candidate>& candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& one) { return sum + one.squared; });
}

double MeanOver(double sum, size_t count) {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

// The trust-region tokens. `sign_from_first` takes a sequence's sign from its
// first token; `tolerance` is how far from 1 a ratio must be.
std::vector<Candidate> TrustTokens(const TokenBatch& batch, bool sign_from_first,
                                   double tolerance) {
  const std::span<const double> reference = batch.reference_logprobs();
  std::vector<Candidate> found;
  for (size_t sequence = 0; sequence < batch.layout.num_sequences(); ++sequence) {
    const size_t begin = batch.layout.begin(sequence);
    for (size_t token = begin; token < batch.layout.end(sequence); ++token) {
      if (!batch.is_policy_token(token)) continue;
      const double advantage = batch.advantages[sign_from_first ? begin : token];
      const double delta = batch.frozen(token) - reference[token];
      const double ratio = std::exp(delta);
      const bool trusted = advantage > tolerance    ? ratio > 1 + tolerance
                           : advantage < -tolerance ? ratio < 1 - tolerance
                                                    : false;
      if (trusted) found.push_back({token, delta * delta});
    }
  }
  return found;
}

// How many of the largest leave until the mean of the rest satisfies `done`.
// Sorts the candidates, the largest first; at equal size the earlier token.
template <typename Done>
size_t NumToDrop(std::vector<Candidate>& candidates, const Done& done) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return LargerFirst({a.squared, a.token}, {b.squared, b.token});
  });
  // Sums of the rest, from the smallest: subtracting the largest from a total
  // would leave rounding errors of its size.
  std::vector<double> rest(candidates.size() + 1, 0.0);
  for (size_t i = candidates.size(); i > 0; --i) {
    rest[i - 1] = rest[i] + candidates[i - 1].squared;
  }
  for (size_t dropped = 0; dropped < candidates.size(); ++dropped) {
    if (done(MeanOver(rest[dropped], candidates.size() - dropped))) return dropped;
  }
  return candidates.size();
}

std::vector<uint8_t> MaskCopy(const SequenceLayout& layout) {
  std::vector<uint8_t> kept(layout.num_tokens());
  for (size_t token = 0; token < kept.size(); ++token) kept[token] = layout.mask[token] != 0;
  return kept;
}

// The largest d^2 under the cap, as the published solver finds it: position k
// is the first whose capped sum reaches the target, and the one before it is
// the answer. k = 0 has none before it.
size_t BreakPoint(const std::vector<double>& ascending, double target) {
  double sum = 0;
  for (size_t k = 0; k < ascending.size(); ++k) {
    sum += ascending[k];
    const auto above = static_cast<double>(ascending.size() - k - 1);
    if ((ascending[k] - kTiny) * above + sum >= target - kTiny) return k;
  }
  return ascending.size();
}

// Mean of min(d^2, cap).
double CappedMean(const std::vector<double>& ascending, double cap) {
  double sum = 0;
  for (const double squared : ascending) sum += std::min(squared, cap);
  return MeanOver(sum, ascending.size());
}

}  // namespace

M2poRegion PaperRegion(const TokenBatch& batch, double budget) {
  M2poRegion region;
  region.kept = MaskCopy(batch.layout);
  std::vector<Candidate> trusted = TrustTokens(batch, false, 0);
  region.num_trust_tokens = static_cast<int64_t>(trusted.size());
  region.m2_before = MeanOver(SumOf(trusted), trusted.size());
  const size_t dropped = NumToDrop(trusted, [&](double mean) { return mean <= budget; });
  for (size_t i = 0; i < dropped; ++i) region.kept[trusted[i].token] = 0;
  trusted.erase(trusted.begin(), trusted.begin() + static_cast<ptrdiff_t>(dropped));
  region.m2_after = MeanOver(SumOf(trusted), trusted.size());
  return region;
}

Result<M2poRegion> OfficialRegion(const TokenBatch& batch, double budget, bool compat) {
  const std::vector<Candidate> trusted = TrustTokens(batch, compat, kTiny);
  M2poRegion region;
  region.num_trust_tokens = static_cast<int64_t>(trusted.size());
  region.m2_before = MeanOver(SumOf(trusted), trusted.size());
  region.m2_after = region.m2_before;
  if (region.m2_before <= budget + kTiny) return region;

  std::vector<double> ascending;
  for (const Candidate& candidate : trusted) ascending.push_back(candidate.squared);
  std::sort(ascending.begin(), ascending.end());
  const double target = budget * static_cast<double>(ascending.size());
  if (compat && target <= kTiny) {
    return InvalidArgument("m2po.budget = ", budget, ": the published solver needs more than 0");
  }
  const size_t k = BreakPoint(ascending, target);
  double tau_squared = 0;
  if (k > 0) {
    tau_squared = ascending[k - 1] - kTiny;
    region.m2_after = CappedMean(ascending, ascending[k - 1]);
    if (compat && tau_squared < 0) {
      return InvalidArgument("m2po: a squared log-ratio of ", ascending[k - 1],
                             " at the cap: the published solver needs at least 1e-12");
    }
  } else if (!compat) {
    tau_squared = budget;
    region.m2_after = CappedMean(ascending, budget);
  }
  const auto tau = static_cast<float>(std::sqrt(std::max(tau_squared, 0.0)));
  region.lower = static_cast<double>(std::exp(-tau));
  region.upper = static_cast<double>(std::exp(tau));
  return region;
}

Result<M2poRegion> ChooseRegion(const TokenBatch& batch, const M2poOptions& options) {
  if (options.rule == M2poOptions::Rule::kPaper) return PaperRegion(batch, options.budget);
  Result<M2poRegion> region = OfficialRegion(batch, options.budget, options.compat);
  if (!region.ok()) return region;
  if (options.min_clip_low.has_value()) {
    region->lower = std::min(region->lower, 1 - *options.min_clip_low);
  }
  if (options.min_clip_high.has_value()) {
    region->upper = std::max(region->upper, 1 + *options.min_clip_high);
  }
  return region;
}

std::vector<uint8_t> ArealKeptTokens(const SequenceLayout& layout,
                                     std::span<const double> rollout_logprobs,
                                     std::span<const double> proximal_logprobs, double threshold) {
  std::vector<uint8_t> kept = MaskCopy(layout);
  std::vector<Candidate> candidates;
  for (size_t token = 0; token < kept.size(); ++token) {
    if (kept[token] == 0) continue;
    const double delta = rollout_logprobs[token] - proximal_logprobs[token];
    candidates.push_back({token, delta * delta});
  }
  if (candidates.empty()) return kept;
  const size_t dropped = std::min(
      NumToDrop(candidates, [&](double mean) { return mean < threshold; }), candidates.size() - 1);
  for (size_t i = 0; i < dropped; ++i) kept[candidates[i].token] = 0;
  return kept;
}

}  // namespace pace
