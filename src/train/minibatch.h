// Minibatch: trajectories as the flat arrays that losses and estimators read.
//
// It owns the arrays behind SequenceLayout and TokenBatch (token_batch.h), over
// response tokens alone: prompts are context.
// Thread-safety: plain data.
#ifndef PACE_TRAIN_MINIBATCH_H_
#define PACE_TRAIN_MINIBATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "train/math/token_batch.h"

namespace pace {

// One trajectory, as a trainer sees it.
struct TrainSequence {
  std::vector<TokenId> tokens;          // the prompt, then the response
  int64_t num_prompt_tokens = 0;        // at least 1
  std::vector<uint8_t> mask;            // per response token: 1 = the policy sampled it
  std::vector<float> rollout_logprobs;  // per response token; what stands at 0s is not read
  std::vector<int64_t> versions;        // per response token: the step of its policy
  int64_t group = 0;
  double reward = 0;
  // The reward of the greedy response to the same prompt, where there is one.
  std::optional<double> baseline = {};

  size_t num_response_tokens() const {
    return tokens.size() - static_cast<size_t>(num_prompt_tokens);
  }
  // Lengths agree, ids are inside the vocabulary, the response is not empty.
  [[nodiscard]] Status Validate(int64_t vocab_size) const;
};

struct Minibatch {
  std::vector<const TrainSequence*> sequences;  // borrowed
  std::vector<int64_t> offsets;
  std::vector<int64_t> groups;
  std::vector<uint8_t> mask;
  std::vector<double> rollout_logprobs;
  std::vector<int64_t> versions;
  std::vector<double> rewards;
  // Filled by the trainer, per token, where something asks for them.
  std::vector<double> advantages;
  std::vector<double> proximal_logprobs;
  std::vector<double> importance_weights;
  std::vector<double> initial_logprobs;  // of the policy that the run began with
  std::vector<double> values;            // of the head before the step
  std::vector<double> returns;           // that the head is trained towards
  std::vector<double> token_rewards;     // with a KL penalty inside the reward
  // Per sequence: the sum of its token_rewards, or its reward.
  std::vector<double> shaped_rewards;

  // REQUIRES: every sequence valid
  explicit Minibatch(std::vector<const TrainSequence*> members);

  SequenceLayout layout() const { return {.offsets = offsets, .groups = groups, .mask = mask}; }
  // The same arrays for some of the sequences, in that order.
  Minibatch Part(std::span<const size_t> indices) const;
  // Lengths in tokens that a forward pass reads: all but the last.
  std::vector<int64_t> ForwardLengths() const;
};

// Cuts a step's sequences into `count` minibatches of whole groups, as equal in
// groups as can be. Without a `shuffle_seed` in order of dispatch: the groups begun
// first are trained on first. With one in an order that it and the groups' ids give.
// Fewer groups than `count`: one group each.
std::vector<std::vector<size_t>> SplitByGroups(std::span<const TrainSequence> sequences,
                                               int64_t count,
                                               std::optional<uint64_t> shuffle_seed = {});

// The sequences of groups in which two rewards differ. All of them, if there is no such group.
std::vector<size_t> WithDifferentRewards(std::span<const TrainSequence* const> sequences);

// Packing: which sequences share a forward pass.
//
// First fit, longest first, into bins of a token budget: within 11/9 of the
// fewest bins, plus one. What a bin holds never changes the objective
// (reduction.h), only memory and speed. A sequence above the budget has a bin
// to itself. Indices of the sequences of each bin, rising within a bin; bins in the order
// of their first sequence, so that the order is a function of the lengths alone.
// REQUIRES: token_budget > 0, lengths > 0
std::vector<std::vector<size_t>> PackSequences(std::span<const int64_t> lengths,
                                               int64_t token_budget);

// The same for ranks that compute each pass together, so that its slowest rank sets its time: at
// most `count` bins, as equal in tokens as can be, the largest first. Where equal bins would exceed
// the budget, the bins of PackSequences, the largest first. REQUIRES: count is at least the number
// of bins of PackSequences
std::vector<std::vector<size_t>> PackEvenly(std::span<const int64_t> lengths, int64_t token_budget,
                                            int64_t count);

// Shares sequences among at most `count` threads, the longest first and each to
// the thread with the fewest tokens. Indices rise within a share; no share is
// empty. REQUIRES: count > 0
std::vector<std::vector<size_t>> ShareSequences(std::span<const int64_t> lengths, int64_t count);

}  // namespace pace

#endif  // PACE_TRAIN_MINIBATCH_H_
