#include "model/cpu/truncation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/check.h"
#include "model/cpu/softmax.h"

namespace pace {
namespace {

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
