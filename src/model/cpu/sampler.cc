#include "model/cpu/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "model/cpu/kernels/isa.h"
#include "model/cpu/softmax.h"
#include "model/cpu/truncation.h"

namespace pace {
namespace {

// The first token, in the order of ids, at which the sum of terms exceeds
// `target`; the last one that has a term where rounding leaves none.
TokenId DrawFromAll(std::span<const float> terms, std::span<const float> block_sums,
                    double target) {
  const auto n = static_cast<int64_t>(terms.size());
  double sum = 0;
  TokenId last = 0;
  for (int64_t b = 0; b < static_cast<int64_t>(block_sums.size()); ++b) {
    const double block_sum = block_sums[static_cast<size_t>(b)];
    const bool is_last = b + 1 == static_cast<int64_t>(block_sums.size());
    if (!is_last && sum + block_sum <= target) {
      sum += block_sum;
      continue;
    }
    double within = sum;
    bool any = false;
    for (int64_t i = b * kSumBlock; i < std::min(n, (b + 1) * kSumBlock); ++i) {
      const float term = terms[static_cast<size_t>(i)];
      if (!(term > 0)) continue;
      last = static_cast<TokenId>(i);
      any = true;
      within += term;
      if (within > target) return last;
    }
    if (any) return last;
  }
  return last;
}

TokenId DrawFromKept(std::span<const float> terms, std::span<const TokenId> kept, double target) {
  double sum = 0;
  TokenId last = kept.front();
  for (const TokenId token : kept) {
    const float term = terms[static_cast<size_t>(token)];
    if (!(term > 0)) continue;
    last = token;
    sum += term;
    if (sum > target) break;
  }
  return last;
}

Sampled Greedy(const Kernels& kernels, std::span<const float> logits) {
  const TokenId token = ArgMax(kernels, logits);
  const float logprob = SumTerms(kernels, logits, 1.0).LogProb(logits[static_cast<size_t>(token)]);
  return {.token = token, .logprob = logprob, .sampled_logprob = 0};
}

}  // namespace

Sampled SampleWith(const Kernels& kernels, std::span<const float> logits,
                   const SamplingOptions& options, const SampleKey& key,
                   std::vector<float>& scratch) {
  PACE_CHECK(!logits.empty(), "no logits");
  if (options.greedy()) return Greedy(kernels, logits);
  const auto n = static_cast<int64_t>(logits.size());
  scratch.resize(static_cast<size_t>(n + NumSumBlocks(n)));
  const std::span<float> terms = std::span(scratch).first(logits.size());
  const std::span<float> block_sums = std::span(scratch).subspan(logits.size());
  const Denominator all = SumTerms(kernels, logits, options.scale(), terms, block_sums);
  const double uniform = UniformOf(key);

  std::vector<TokenId> kept;
  if (options.truncated()) kept = Truncate(kernels, logits, terms, options);
  if (kept.empty() || kept.size() == logits.size()) {
    const TokenId token = DrawFromAll(terms, block_sums, uniform * all.sum);
    const float logprob = all.LogProb(logits[static_cast<size_t>(token)]);
    return {.token = token, .logprob = logprob, .sampled_logprob = logprob};
  }
  Denominator rest = all;
  rest.sum = 0;
  for (const TokenId token : kept) rest.sum += terms[static_cast<size_t>(token)];
  const TokenId token = DrawFromKept(terms, kept, uniform * rest.sum);
  const float logit = logits[static_cast<size_t>(token)];
  return {.token = token, .logprob = all.LogProb(logit), .sampled_logprob = rest.LogProb(logit)};
}

float LogProbWith(const Kernels& kernels, std::span<const float> logits, double scale,
                  TokenId target) {
  PACE_CHECK(target >= 0 && static_cast<size_t>(target) < logits.size(), "target = ", target);
  return SumTerms(kernels, logits, scale).LogProb(logits[static_cast<size_t>(target)]);
}

Sampled Sample(std::span<const float> logits, const SamplingOptions& options, const SampleKey& key,
               std::vector<float>& scratch) {
  return SampleWith(KernelsOf(BestIsa()), logits, options, key, scratch);
}

float LogProbOf(std::span<const float> logits, double scale, TokenId target) {
  return LogProbWith(KernelsOf(BestIsa()), logits, scale, target);
}

}  // namespace pace
