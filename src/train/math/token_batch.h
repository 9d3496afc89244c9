// The tokens of a minibatch, packed one sequence behind the other.
//
// Everything the objective needs stands in flat arrays of one entry per token
// or per sequence; there is no padding. `mask` is 1 on the policy's own tokens
// and 0 on what it only read (tool output, say). What stands at a masked
// position never matters, not even when it is NaN.
//
//   TokenBatch batch;
//   batch.layout = {.offsets = offsets, .groups = groups, .mask = mask};
//   batch.logprobs = logprobs;
//   batch.rollout_logprobs = recorded;
//   batch.advantages = advantages;
//   Result<LossResult> result = loss->Evaluate(batch, weights);
//
// The structs borrow their arrays. Thread-safety: plain data.
#ifndef PACE_TRAIN_MATH_TOKEN_BATCH_H_
#define PACE_TRAIN_MATH_TOKEN_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "config/objective.h"
#include "core/status.h"

namespace pace {

// Which tokens belong to which sequence and which group.
struct SequenceLayout {
  // Sequence i holds the tokens offsets[i] .. offsets[i + 1] - 1; begins with 0.
  std::span<const int64_t> offsets = {};
  // The group of each sequence, any numbers; empty: every sequence is alone.
  std::span<const int64_t> groups = {};
  // 1 on policy tokens, 0 elsewhere, one per token.
  std::span<const uint8_t> mask = {};

  size_t num_sequences() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  size_t num_tokens() const { return mask.size(); }
  size_t begin(size_t sequence) const { return static_cast<size_t>(offsets[sequence]); }
  size_t end(size_t sequence) const { return static_cast<size_t>(offsets[sequence + 1]); }
  // Policy tokens of one sequence, of all.
  int64_t num_policy_tokens(size_t sequence) const;
  int64_t num_policy_tokens() const;

  [[nodiscard]] Status Validate() const;
};

// The sequences of each group, groups in the order in which they first appear.
// REQUIRES: layout.Validate().ok()
std::vector<std::vector<size_t>> GroupMembers(const SequenceLayout& layout);

// The sequence of each token. REQUIRES: layout.Validate().ok()
std::vector<size_t> SequenceOfTokens(const SequenceLayout& layout);

// Over the policy tokens of one sequence.
struct SequenceSum {
  double sum = 0;
  int64_t num_tokens = 0;

  // 0 over nothing.
  double mean() const { return num_tokens > 0 ? sum / static_cast<double>(num_tokens) : 0; }
};

// The sum of value_of(token) over the policy tokens of each sequence.
template <typename ValueOf>
std::vector<SequenceSum> SumBySequence(const SequenceLayout& layout, const ValueOf& value_of) {
  std::vector<SequenceSum> sums(layout.num_sequences());
  for (size_t sequence = 0; sequence < layout.num_sequences(); ++sequence) {
    for (size_t token = layout.begin(sequence); token < layout.end(sequence); ++token) {
      if (layout.mask[token] == 0) continue;
      sums[sequence].sum += value_of(token);
      ++sums[sequence].num_tokens;
    }
  }
  return sums;
}

struct TokenBatch {
  SequenceLayout layout = {};

  // log pi_theta of each token, in which the loss is differentiated.
  std::span<const double> logprobs = {};
  // The same numbers where a formula has a stop-gradient; empty: `logprobs`.
  // They differ only under a finite difference, which moves `logprobs` alone.
  std::span<const double> frozen_logprobs = {};
  // Recorded by the engine that sampled the tokens.
  std::span<const double> rollout_logprobs = {};
  // Recomputed by the trainer before the step's first update.
  std::span<const double> proximal_logprobs = {};
  RatioReference reference = RatioReference::kRollout;

  std::span<const double> advantages = {};
  // Multiplies each token's loss, without a gradient of its own (truncated
  // importance sampling); empty: 1.
  std::span<const double> importance_weights = {};
  // The outcome of each sequence, for losses that ask for its sign.
  std::span<const double> rewards = {};

  size_t num_tokens() const { return layout.num_tokens(); }
  bool is_policy_token(size_t token) const { return layout.mask[token] != 0; }
  double frozen(size_t token) const {
    return frozen_logprobs.empty() ? logprobs[token] : frozen_logprobs[token];
  }
  double importance_weight(size_t token) const {
    return importance_weights.empty() ? 1.0 : importance_weights[token];
  }
  std::span<const double> reference_logprobs() const {
    return reference == RatioReference::kRollout ? rollout_logprobs : proximal_logprobs;
  }

  // Sizes agree; log-probs and advantages are there.
  [[nodiscard]] Status Validate() const;
};

// An error naming the array unless it has one entry per `what`, or is empty
// where `may_be_empty`.
[[nodiscard]] Status CheckLength(std::string_view array, size_t length, std::string_view what,
                                 size_t expected, bool may_be_empty);

}  // namespace pace

#endif  // PACE_TRAIN_MATH_TOKEN_BATCH_H_
