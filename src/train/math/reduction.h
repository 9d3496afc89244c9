// Reductions: how the losses of tokens become one number.
//
// A reduction is a weight per token, computed from the masks and lengths of
// the *whole* minibatch; the objective is sum_t w_t L_t. So neither packing
// nor splitting a minibatch into micro-batches, nor sharing it among
// processes, can change the objective.
//
//   const MinibatchTotals totals = CountTotals(minibatch_layout);
//   Result<ReductionWeights> weights =
//       WeighTokens(micro_batch_layout, totals, {.mode = ReductionMode::kTokenMean});
//
// With N policy tokens in the minibatch, n_i of them in sequence i, S sequences
// that have any, and horizon H:
//
//   token-mean               w = 1 / N                     (DAPO)
//   token-sum                w = 1
//   seq-mean-token-sum       w = 1 / S
//   seq-mean-token-mean      w = 1 / (S n_i)               (GRPO, GSPO)
//   seq-mean-token-sum-norm  w = 1 / (S H)                 (Dr.GRPO)
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_MATH_REDUCTION_H_
#define PACE_TRAIN_MATH_REDUCTION_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "config/objective.h"
#include "core/status.h"
#include "train/math/token_batch.h"

namespace pace {

std::optional<ReductionMode> ReductionModeFromName(std::string_view name);
std::string_view NameOf(ReductionMode mode);

// What a minibatch holds, over all its micro-batches and processes. Counts of
// parts add up.
struct MinibatchTotals {
  int64_t num_tokens = 0;     // policy tokens
  int64_t num_sequences = 0;  // sequences with at least one
};
MinibatchTotals CountTotals(const SequenceLayout& layout);

// What a peer's reduction does where the mask is 0; for comparisons alone.
enum class PaddingRule {
  kIgnore,  // nothing: masked positions never matter
  // A minibatch without policy tokens gives 0 / 0, and seq-* modes multiply
  // masked losses by 0, so that a NaN there reaches the loss.
  kVerl,
  // As verl in early 2025, on which M2PO's code rests: a sequence without
  // policy tokens counts, and its token mean is 0 / 0, gradient included.
  kEarlyVerl,
  // ROLL: token-mean sums masked positions too.
  kRoll,
};

struct ReductionOptions {
  ReductionMode mode = ReductionMode::kTokenMean;
  // H of seq-mean-token-sum-norm: a constant of the run, such as the response
  // budget. Must be positive in that mode.
  double horizon = 0;
  // Multiplies every weight: the number of processes where their gradients are
  // averaged instead of summed.
  double scale = 1;
  PaddingRule padding = PaddingRule::kIgnore;

  [[nodiscard]] Status Validate() const;
};

struct ReductionWeights {
  enum class Padding { kIgnored, kInLoss, kInLossAndGradient };

  std::vector<double> token = {};  // one per token; 0 where the mask is 0
  // Under kIgnored every loss leaves masked positions out.
  Padding padding = Padding::kIgnored;
  // Added to the loss: 0, or NaN where a peer divides 0 by 0.
  double offset = 0;
};

// The weights of the tokens in `layout`, a part (or all) of the minibatch that
// `totals` counts.
Result<ReductionWeights> WeighTokens(const SequenceLayout& layout, const MinibatchTotals& totals,
                                     const ReductionOptions& options);

}  // namespace pace

#endif  // PACE_TRAIN_MATH_REDUCTION_H_
