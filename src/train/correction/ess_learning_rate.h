// VCPO's learning rate: the more the weights of a minibatch differ, the
// smaller the update.
//
//   w_i = exp(sum_t (log pi_train - log pi_rollout)) of sequence i
//   rho = (sum w)^2 / (B sum w^2)                     over the whole minibatch
//   lr  = base lr * rule(min(1, rho / base_ratio)),   rule: sqrt or linear
//
// for one update. A sequence without policy tokens weighs 1. Source: arXiv
// 2602.17616 and mit-han-lab/vcpo; base_ratio 1, sqrt, weights as they are
// (`max_weight` bounds them where `bounded` asks for it).
//
// The published code forms weights in float32 and adds 1e-8 to sum w^2: an
// overflow makes rho NaN and then gives the *full* rate, and equal tiny weights
// stop learning. Here rho is computed from logarithms; `compat` repeats theirs.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_CORRECTION_ESS_LEARNING_RATE_H_
#define PACE_TRAIN_CORRECTION_ESS_LEARNING_RATE_H_

#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "train/option_reader.h"
#include "train/token_batch.h"

namespace pace {

struct EssLearningRateOptions {
  enum class Rule { kSqrt, kLinear };

  Rule rule = Rule::kSqrt;
  // The ratio at which the learning rate is whole.
  double base_ratio = 1;
  // Bound of a sequence's weight; none: no bound. The published scripts: 8.
  std::optional<double> max_weight = std::nullopt;
  // Whether the learning rate uses bounded weights.
  bool bounded = false;
  bool compat = false;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

struct EssLearningRate {
  std::vector<double> log_weights = {};  // of each sequence, unbounded
  double ess_ratio = 1;                  // of the weights as they are
  double bounded_ess_ratio = 1;          // of the bounded ones
  double scale = 1;                      // what to multiply the learning rate by
};

Result<EssLearningRate> ScaleLearningRate(const SequenceLayout& layout,
                                          std::span<const double> train_logprobs,
                                          std::span<const double> rollout_logprobs,
                                          const EssLearningRateOptions& options);

}  // namespace pace

#endif  // PACE_TRAIN_CORRECTION_ESS_LEARNING_RATE_H_
