// PolicyRows and PolicyScores: hidden states and log-probabilities of a
// micro-batch's policy tokens, from one packed forward pass, and the way between
// them and arrays over all tokens.
// Thread-safety: as the network's.
#ifndef PACE_TRAIN_POLICY_SCORES_H_
#define PACE_TRAIN_POLICY_SCORES_H_

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/torch/training_network.h"
#include "train/minibatch.h"

namespace pace {

// Log-probability and entropy of next tokens, without holding all logits.
//
// Logits exist for one chunk of rows at a time and are computed again in the
// backward pass, so memory does not grow with rows times vocabulary. Sums are
// float32 at least, whatever the dtype of the network.
//
//   auto [logprobs_N, entropy_N] = TokenLogProbs(hidden_NH, head_VH, targets_N, 1.0);
//   at::autograd backward: gradients of both reach hidden and head.
//
// Where the derivatives follow from the log-probs of a chunk, `slopes` spares the second
// computation of its logits: the gradients are computed in the forward pass, and the backward pass
// takes them, whatever gradients it is given.
struct TokenLogProbsResult {
  at::Tensor logprobs_N;  // float32, or double for a double network
  at::Tensor entropy_N;   // of softmax(logits / temperature); without gradient unless asked
};

// d objective / d log-prob and, or undefined, / d entropy of some rows.
struct RowSlopes {
  at::Tensor of_logprob_N;
  at::Tensor of_entropy_N = {};
};
// Of the rows from `begin` on that have these log-probs.
using SlopesOfRows = std::function<RowSlopes(int64_t begin, const at::Tensor& logprobs_N)>;

// log softmax(hidden head^T / temperature)[target] of each row. `slopes` may be empty.
// REQUIRES: temperature > 0; targets_N int64, inside the vocabulary
TokenLogProbsResult TokenLogProbs(const at::Tensor& hidden_NH, const at::Tensor& head_VH,
                                  const at::Tensor& targets_N, double temperature,
                                  const SlopesOfRows& slopes = {});

struct PolicyRows {
  at::Tensor hidden_NH;        // of the position before each token, which predicts it
  at::Tensor targets_N;        // the tokens
  std::vector<size_t> tokens;  // of the micro-batch: its policy tokens, rising

  // Values of these tokens, from row `begin` on, into the places of all tokens.
  void Spread(const at::Tensor& values_N, std::span<double> out, size_t begin = 0) const;
  // Of values over all tokens, those of these, in the dtype of log-probs.
  at::Tensor Gather(std::span<const double> values) const;
  // The same for rows [begin, begin + count), of values over the tokens from tokens[begin] on.
  at::Tensor GatherRange(std::span<const double> values, size_t begin, size_t count) const;
};

struct PolicyScores : PolicyRows {
  at::Tensor logprobs_N;
  at::Tensor entropy_N;
};

// As SlopesOfRows.
using SlopesOfPolicy =
    std::function<RowSlopes(const PolicyRows& rows, int64_t begin, const at::Tensor& logprobs_N)>;

// One packed forward pass; differentiable where gradients are enabled.
PolicyRows ForwardPolicyRows(const TrainingNetwork& network, const Minibatch& batch);
PolicyScores ScorePolicyTokens(const TrainingNetwork& network, const Minibatch& batch,
                               double temperature, const SlopesOfPolicy& slopes = {});

}  // namespace pace

#endif  // PACE_TRAIN_POLICY_SCORES_H_
