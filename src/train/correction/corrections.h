// Corrections for data that another policy sampled. Each is a source beside this
// file, where its formula stands; options are in config/correction_options.h.
//
//   Result<CorrectionOptions> tis = CorrectionNamed("tis", {{"upper", "2"}});
//   Result<Correction> correction = CorrectRollout(layout, proximal, rollout, *tis);
//   mask = correction->mask;  batch.importance_weights = correction->weights;
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TRAIN_CORRECTION_CORRECTIONS_H_
#define PACE_TRAIN_CORRECTION_CORRECTIONS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "config/correction_options.h"
#include "core/status.h"
#include "train/math/metric.h"
#include "train/math/token_batch.h"

namespace pace {

struct Correction {
  // One per token, 0 where masked; empty without ImportanceOptions.
  std::vector<double> weights = {};
  // The mask, less what was rejected.
  std::vector<uint8_t> mask = {};
  // Means over policy tokens, except where the name says seq: train/ess (the
  // weights' effective sample size over their number), train/is_{mean,
  // fraction_high, fraction_low, out_of_band}, train/mismatch_{kl, k3, chi2};
  // per criterion and over all train/rejected[_NAME][_seq].
  MetricList metrics = {};
};

// Importance weights and rejection (rollout_correction.cc).
Result<Correction> CorrectRollout(const SequenceLayout& layout,
                                  std::span<const double> train_logprobs,
                                  std::span<const double> rollout_logprobs,
                                  const CorrectionOptions& options);

struct BehaviorWeights {
  std::vector<double> weights = {};  // one per token; 0 where left out or masked
  std::vector<uint8_t> kept = {};    // the mask, less what was left out
  // Share of the policy tokens that were left out, or whose weight was changed.
  double filtered_fraction = 0;
};

// Decoupled PPO's weights of tokens (behavior_weights.cc).
// REQUIRES: layout.Validate().ok(), options.Validate().ok(), an entry per token
BehaviorWeights WeighBehavior(const SequenceLayout& layout,
                              std::span<const double> proximal_logprobs,
                              std::span<const double> rollout_logprobs,
                              const BehaviorOptions& options);

enum class ProximalEstimate { kLogLinear, kLinear, kRollout };

// "loglinear", "linear", "rollout"; nothing for another text.
std::optional<ProximalEstimate> ProximalEstimateFromName(std::string_view name);

// The proximal policy without its forward pass (proximal.cc). REQUIRES: equal lengths
std::vector<double> EstimateProximal(ProximalEstimate method,
                                     std::span<const double> rollout_logprobs,
                                     std::span<const double> logprobs,
                                     std::span<const int64_t> versions, int64_t proximal_version,
                                     int64_t trained_version);

// Effective sample size: how many equal weights the given ones are worth.
//
//   ESS ratio = (sum w)^2 / (n sum w^2)
//
// 1 for equal weights of any size, 1 / n when one outweighs all others. Computed from
// logarithms, relative to the largest, so that neither overflow nor a common factor
// can change it. In [0, 1]; 0 without weights or where all are 0 (logarithm -infinity).
double EffectiveSampleRatio(std::span<const double> log_weights);

struct EssLearningRate {
  std::vector<double> log_weights = {};  // of each sequence, unbounded
  double ess_ratio = 1;                  // of the weights as they are
  double bounded_ess_ratio = 1;          // of the bounded ones
  double scale = 1;                      // what to multiply the learning rate by
};

// VCPO's learning rate (ess_learning_rate.cc).
Result<EssLearningRate> ScaleLearningRate(const SequenceLayout& layout,
                                          std::span<const double> train_logprobs,
                                          std::span<const double> rollout_logprobs,
                                          const EssLearningRateOptions& options);

// One entry per trajectory each.
struct OpobBatch {
  std::span<const int64_t> groups = {};
  std::span<const double> rewards = {};     // scope group
  std::span<const double> advantages = {};  // scope minibatch
  std::span<const double> gradient_norms = {};
  std::span<const double> weights = {};  // w_i
  std::span<const int64_t> lengths = {};
};

struct OpobResult {
  std::vector<double> baselines = {};     // b of each trajectory's group
  std::vector<double> coefficients = {};  // c_i
};

// VCPO's baseline (opob.cc).
Result<OpobResult> OffPolicyBaseline(const OpobBatch& batch, const OpobOptions& options);

}  // namespace pace

#endif  // PACE_TRAIN_CORRECTION_CORRECTIONS_H_
