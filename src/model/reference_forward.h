// ReferenceForward: the networks once more, slow and obvious.
//
// One sequence, one token after the other, in double; no cache, no batch, no
// kernels. It shares nothing with network.h but the config and the weights, so
// that tests can hold the fast paths against it. For tests alone.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_REFERENCE_FORWARD_H_
#define PACE_MODEL_REFERENCE_FORWARD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/token_id.h"
#include "model/model_config.h"
#include "model/weight_set.h"

namespace pace {

// What the router of a sparse layer gave one token.
struct ReferenceRouting {
  int64_t layer = 0;
  int64_t position = 0;
  std::vector<double> logits;    // of all experts
  std::vector<int64_t> experts;  // chosen, by falling probability
  std::vector<double> weights;   // of the chosen
};

struct ReferenceResult {
  std::vector<std::vector<double>> hidden;  // by position: the last state, normed
  std::vector<std::vector<double>> logits;  // by position
  std::vector<ReferenceRouting> routing;
};

// REQUIRES: tokens in the vocabulary, weights of this config
ReferenceResult ReferenceForward(const ModelConfig& config, const WeightSet& weights,
                                 std::span<const TokenId> tokens);

}  // namespace pace

#endif  // PACE_MODEL_REFERENCE_FORWARD_H_
