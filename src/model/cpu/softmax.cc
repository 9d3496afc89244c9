#include "model/cpu/softmax.h"

#include <algorithm>
#include <cmath>

namespace pace {

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

}  // namespace pace
