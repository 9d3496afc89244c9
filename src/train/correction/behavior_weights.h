// The weight of data by who sampled it: pi_proximal / pi_rollout, bounded.
//
// Decoupled PPO multiplies each token's loss by it, without gradient. A token
// or a sequence out of bounds is either left out (mask) or weighs the bound
// (clamp). Bounds apply to a measure of d = log pi_proximal - log pi_rollout:
//
//   ratio  e^d           k1  d           k2  d^2 / 2           k3  e^-d - 1 + d
//
// At sequence level the measure is the sum, mean or maximum over policy tokens
// (of d itself for `ratio`: a product, geometric mean or largest ratio), and
// under `ratio` all tokens of a sequence weigh their geometric mean.
//
// Source: AReaL (arXiv 2505.24298 and its code); tokens above 5 are left out.
// There a non-finite d becomes weight 1; here such a token is left out.
//
// Thread-safety: a function of its arguments.
#ifndef PACE_TRAIN_CORRECTION_BEHAVIOR_WEIGHTS_H_
#define PACE_TRAIN_CORRECTION_BEHAVIOR_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "train/option_reader.h"
#include "train/token_batch.h"

namespace pace {

struct BehaviorOptions {
  enum class Action { kMask, kClamp };
  enum class Measure { kRatio, kK1, kK2, kK3 };
  enum class Aggregation { kMean, kSum, kMax };

  RatioLevel level = RatioLevel::kToken;
  Action action = Action::kMask;
  Measure measure = Measure::kRatio;
  // How tokens make up a sequence's measure.
  Aggregation aggregation = Aggregation::kMean;
  double upper = 5;
  std::optional<double> lower = std::nullopt;

  void Read(OptionReader& reader);
  [[nodiscard]] Status Validate() const;
};

struct BehaviorWeights {
  std::vector<double> weights = {};  // one per token; 0 where left out or masked
  std::vector<uint8_t> kept = {};    // the mask, less what was left out
  // Share of the policy tokens that were left out, or whose weight was changed.
  double filtered_fraction = 0;
};

// REQUIRES: layout.Validate().ok(), options.Validate().ok(), an entry per token
BehaviorWeights WeighBehavior(const SequenceLayout& layout,
                              std::span<const double> proximal_logprobs,
                              std::span<const double> rollout_logprobs,
                              const BehaviorOptions& options);

}  // namespace pace

#endif  // PACE_TRAIN_CORRECTION_BEHAVIOR_WEIGHTS_H_
