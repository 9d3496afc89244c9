// Truncation: which tokens top-k, top-p and min-p leave to sample from.
//
// No sort of the vocabulary: the k-th largest is sought above a bound that the
// maxima of blocks give; where top-p ends, between two powers of two that a
// bisection finds.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_CPU_TRUNCATION_H_
#define PACE_MODEL_CPU_TRUNCATION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/token_id.h"
#include "model/cpu/kernels/kernels.h"
#include "model/sampling.h"

namespace pace {

// The value that has k - 1 before it, by falling value. REQUIRES: 1 <= k <= size
float KthLargest(const Kernels& kernels, std::span<const float> values, int64_t k);

// The tokens that are left, rising; at least one. `terms` are proportional to
// the probabilities, the largest is 1. REQUIRES: as many terms as logits
std::vector<TokenId> Truncate(const Kernels& kernels, std::span<const float> logits,
                              std::span<const float> terms, const SamplingOptions& options);

}  // namespace pace

#endif  // PACE_MODEL_CPU_TRUNCATION_H_
