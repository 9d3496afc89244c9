#include "model/cpu/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/check.h"
#include "model/cpu/kernels/isa.h"

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

std::vector<TokenId> FindAtLeast(const Kernels& kernels, std::span<const float> values,
                                 float limit) {
  std::vector<TokenId> found(values.size());
  const int64_t count = kernels.find_at_least(values.data(), static_cast<int64_t>(values.size()),
                                              limit, found.data());
  found.resize(static_cast<size_t>(count));
  return found;
}

float KthOf(std::vector<float>& values, int64_t k) {
  const auto kth = values.begin() + (k - 1);
  std::nth_element(values.begin(), kth, values.end(), std::greater<>());
  return *kth;
}

double SumAtLeast(const Kernels& kernels, std::span<const float> values, float limit) {
  const auto n = static_cast<int64_t>(values.size());
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    sum += kernels.sum_at_least(values.data() + begin, std::min(kSumBlock, n - begin), limit);
  }
  return sum;
}

// Leaves as few of `tokens` as reach `needed` > 0, by falling term (rising id
// among equals). Halves the range in question, so the time is linear.
void KeepFewest(std::span<const float> terms, double needed, std::vector<TokenId>& tokens) {
  const auto before = [&terms](TokenId a, TokenId b) {
    const float term_a = terms[static_cast<size_t>(a)];
    const float term_b = terms[static_cast<size_t>(b)];
    return term_a != term_b ? term_a > term_b : a < b;
  };
  // Those before `begin` do not reach it; those before `end` do, or are all.
  auto begin = tokens.begin();
  auto end = tokens.end();
  double sum = 0;
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, before);
    double next = sum;
    for (auto token = begin; token != middle; ++token) next += terms[static_cast<size_t>(*token)];
    if (next >= needed) {
      end = middle;
    } else {
      sum = next;
      begin = middle;
    }
  }
  tokens.erase(end, tokens.end());
}

// Indices into `terms`: as few of the largest as reach top_p of `total`, rising.
std::vector<TokenId> FewestThatReach(const Kernels& kernels, std::span<const float> terms,
                                     double total, double top_p) {
  const double wanted = top_p * total;
  // Terms lie in (0, 1]: those of 2^-low and more are enough, and unless low is
  // 0, those of 2^-(low - 1) and more are too few. Only the rest is ordered.
  int low = 126;
  int high = -1;
  while (low - high > 1) {
    const int middle = (low + high) / 2;
    (SumAtLeast(kernels, terms, std::ldexp(1.0F, -middle)) >= wanted ? low : high) = middle;
  }
  std::vector<TokenId> open = FindAtLeast(kernels, terms, std::ldexp(1.0F, -low));
  std::vector<TokenId> sure;
  double sum = 0;
  if (low > 0) {
    const float limit = std::ldexp(1.0F, 1 - low);
    sure = FindAtLeast(kernels, terms, limit);
    sum = SumAtLeast(kernels, terms, limit);
    std::erase_if(open, [&](TokenId token) { return terms[static_cast<size_t>(token)] >= limit; });
  }
  KeepFewest(terms, wanted - sum, open);
  std::sort(open.begin(), open.end());
  std::vector<TokenId> kept(sure.size() + open.size());
  std::merge(sure.begin(), sure.end(), open.begin(), open.end(), kept.begin());
  return kept;
}

}  // namespace

float Denominator::LogProb(float logit) const {
  return static_cast<float>((static_cast<double>(logit) - largest) / scale - std::log(sum));
}

Denominator SumTerms(const Kernels& kernels, std::span<const float> logits, double scale,
                     std::span<float> terms, std::span<float> block_sums) {
  const auto n = static_cast<int64_t>(logits.size());
  Denominator result{.largest = kernels.max_of(logits.data(), n), .scale = scale, .sum = 0};
  const auto factor = static_cast<float>(1.0 / scale);
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    float* const out = terms.empty() ? nullptr : terms.data() + begin;
    const float sum = kernels.exp_sum(logits.data() + begin, std::min(kSumBlock, n - begin),
                                      result.largest, factor, out);
    if (!block_sums.empty()) block_sums[static_cast<size_t>(begin / kSumBlock)] = sum;
    result.sum += sum;
  }
  return result;
}

TokenId ArgMax(const Kernels& kernels, std::span<const float> logits) {
  const auto n = static_cast<int64_t>(logits.size());
  const float largest = kernels.max_of(logits.data(), n);
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t count = std::min(kSumBlock, n - begin);
    if (!(kernels.max_of(logits.data() + begin, count) >= largest)) continue;
    for (int64_t i = begin; i < begin + count; ++i) {
      if (logits[static_cast<size_t>(i)] == largest) return static_cast<TokenId>(i);
    }
  }
  return 0;  // nothing but NaN
}

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

float KthLargest(const Kernels& kernels, std::span<const float> values, int64_t k) {
  const auto n = static_cast<int64_t>(values.size());
  PACE_CHECK(k >= 1 && k <= n, k, " of ", n);
  // k blocks have maxima of at least the k-th of them, so k values are as large.
  // A NaN is no value: nothing here orders it.
  constexpr int64_t kBlock = 64;
  std::vector<float> maxima;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const float largest = kernels.max_of(values.data() + begin, std::min(kBlock, n - begin));
    if (!std::isnan(largest)) maxima.push_back(largest);
  }
  const bool is_bounded = k <= static_cast<int64_t>(maxima.size());
  const float bound = is_bounded ? KthOf(maxima, k) : -std::numeric_limits<float>::infinity();
  std::vector<float> candidates;
  for (const TokenId i : FindAtLeast(kernels, values, bound)) {
    candidates.push_back(values[static_cast<size_t>(i)]);
  }
  if (candidates.empty()) return bound;
  return KthOf(candidates, std::min(k, static_cast<int64_t>(candidates.size())));
}

std::vector<TokenId> Truncate(const Kernels& kernels, std::span<const float> logits,
                              std::span<const float> terms, const SamplingOptions& options) {
  const auto n = static_cast<int64_t>(logits.size());
  PACE_CHECK(terms.size() == logits.size(), terms.size(), " terms, ", logits.size(), " logits");
  std::vector<TokenId> kept;
  if (options.top_k > 0 && options.top_k < n) {
    kept = FindAtLeast(kernels, logits, KthLargest(kernels, logits, options.top_k));
  }
  if (options.top_p < 1) {
    if (kept.empty()) {
      kept = FewestThatReach(kernels, terms, SumAtLeast(kernels, terms, 0.0F), options.top_p);
    } else {
      std::vector<float> left;
      double total = 0;
      for (const TokenId token : kept) {
        left.push_back(terms[static_cast<size_t>(token)]);
        total += left.back();
      }
      std::vector<TokenId> chosen = FewestThatReach(kernels, left, total, options.top_p);
      for (TokenId& i : chosen) i = kept[static_cast<size_t>(i)];
      kept = std::move(chosen);
    }
  }
  const auto limit = static_cast<float>(options.min_p);
  if (options.min_p > 0 && kept.empty()) return FindAtLeast(kernels, terms, limit);
  std::erase_if(kept, [&](TokenId token) { return terms[static_cast<size_t>(token)] < limit; });
  return kept;
}

}  // namespace pace
