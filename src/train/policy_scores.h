// PolicyRows and PolicyScores: hidden states and log-probabilities of a
// micro-batch's policy tokens, from one packed forward pass, and the way between
// them and arrays over all tokens.
// Thread-safety: as the network's.
#ifndef PACE_TRAIN_POLICY_SCORES_H_
#define PACE_TRAIN_POLICY_SCORES_H_

#include <ATen/ATen.h>

#include <cstddef>
#include <span>
#include <vector>

#include "model/torch/training_network.h"
#include "train/minibatch.h"

namespace pace {

struct PolicyRows {
  at::Tensor hidden_NH;        // of the position before each token, which predicts it
  at::Tensor targets_N;        // the tokens
  std::vector<size_t> tokens;  // of the micro-batch: its policy tokens, rising

  // Values of these tokens into the places of all tokens.
  void Spread(const at::Tensor& values_N, std::span<double> out) const;
  // Of values over all tokens, those of these, in the dtype of log-probs.
  at::Tensor Gather(std::span<const double> values) const;
};

struct PolicyScores : PolicyRows {
  at::Tensor logprobs_N;
  at::Tensor entropy_N;
};

// One packed forward pass; differentiable where gradients are enabled.
PolicyRows ForwardPolicyRows(const TrainingNetwork& network, const Minibatch& batch);
PolicyScores ScorePolicyTokens(const TrainingNetwork& network, const Minibatch& batch,
                               double temperature);

}  // namespace pace

#endif  // PACE_TRAIN_POLICY_SCORES_H_
