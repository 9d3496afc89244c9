// Sampling as sampling.h defines it, on the CPU.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_CPU_SAMPLER_H_
#define PACE_MODEL_CPU_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/token_id.h"
#include "model/cpu/kernels/kernels.h"
#include "model/sampling.h"

namespace pace {

// Softmax over the logits of one row, with the terms kept for sampling.
//
// Terms are exp((logit - largest) / scale) in float32, summed in blocks whose
// sums are added in double: accurate to about 1e-7 at any vocabulary.

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

// REQUIRES: logits not empty, options valid. `scratch` is reused between calls.
Sampled Sample(std::span<const float> logits, const SamplingOptions& options, const SampleKey& key,
               std::vector<float>& scratch);

// log softmax(logits / scale)[target].
float LogProbOf(std::span<const float> logits, double scale, TokenId target);

// With kernels of the caller's choice.
Sampled SampleWith(const Kernels& kernels, std::span<const float> logits,
                   const SamplingOptions& options, const SampleKey& key,
                   std::vector<float>& scratch);

float LogProbWith(const Kernels& kernels, std::span<const float> logits, double scale,
                  TokenId target);

// Truncation: which tokens top-k, top-p and min-p leave to sample from.
//
// No sort of the vocabulary: the k-th largest is sought above a bound that the
// maxima of blocks give; where top-p ends, between two powers of two that a
// bisection finds.

// The value that has k - 1 before it, by falling value. REQUIRES: 1 <= k <= size
float KthLargest(const Kernels& kernels, std::span<const float> values, int64_t k);

// The tokens that are left, rising; at least one. `terms` are proportional to
// the probabilities, the largest is 1. REQUIRES: as many terms as logits
std::vector<TokenId> Truncate(const Kernels& kernels, std::span<const float> logits,
                              std::span<const float> terms, const SamplingOptions& options);

}  // namespace pace

#endif  // PACE_MODEL_CPU_SAMPLER_H_
