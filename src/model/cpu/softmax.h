// Softmax over the logits of one row, with the terms kept for sampling.
//
// Terms are exp((logit - largest) / scale) in float32, summed in blocks whose
// sums are added in double: accurate to about 1e-7 at any vocabulary.
// Thread-safety: values and pure functions.
#ifndef PACE_MODEL_CPU_SOFTMAX_H_
#define PACE_MODEL_CPU_SOFTMAX_H_

#include <cstdint>
#include <span>

#include "core/token_id.h"
#include "model/cpu/kernels/kernels.h"

namespace pace {

// Terms per block.
inline constexpr int64_t kSumBlock = 1024;

constexpr int64_t NumSumBlocks(int64_t num_terms) {
  return (num_terms + kSumBlock - 1) / kSumBlock;
}

struct Denominator {
  float largest = 0;  // logit
  double scale = 1;
  double sum = 0;

  // log softmax(logits / scale) of a token with this logit.
  float LogProb(float logit) const;
};

// `terms` (as many as logits) and `block_sums` (NumSumBlocks) receive what they
// are named for, or are empty. REQUIRES: logits not empty
Denominator SumTerms(const Kernels& kernels, std::span<const float> logits, double scale,
                     std::span<float> terms = {}, std::span<float> block_sums = {});

// The first index of the largest logit.
TokenId ArgMax(const Kernels& kernels, std::span<const float> logits);

}  // namespace pace

#endif  // PACE_MODEL_CPU_SOFTMAX_H_
