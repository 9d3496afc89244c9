// Settings of the trainer: the section `train`. Fields() documents each.
// Thread-safety: plain data.
#ifndef PACE_CONFIG_TRAIN_OPTIONS_H_
#define PACE_CONFIG_TRAIN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/advantage_options.h"
#include "config/correction_options.h"
#include "config/field.h"
#include "config/loss_options.h"
#include "core/status.h"

namespace pace {

enum class RolloutLogprobs { kFull, kSampled };

// What each of several ranks keeps a part of (train/parameter_shards.h).
enum class ShardMode { kNone, kOptimizer, kGradients, kFull };
std::string_view ShardModeName(ShardMode mode);

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

// The value head of the advantage `gae`: one linear row on the last hidden states.
struct ValueHeadOptions {
  double learning_rate = 1e-3;  // of its own AdamW; no warm-up, no decay
  double coefficient = 0.5;
  double clip = 0.5;
  bool trains_trunk = false;
};

// Estimators of a KL divergence from sampled tokens (train/math/kl_penalty.h).
enum class KlEstimator { kK1, kK2, kK3, kAbsolute };

struct KlPenaltyOptions {
  KlEstimator estimator = KlEstimator::kK3;
  // The estimator's value with the gradient of k2.
  bool straight_through = false;
  // Bound of |log ratio| inside k3; none: no bound.
  std::optional<double> max_log_ratio = 20;
  // Bound of |k3|; none: no bound.
  std::optional<double> max_value = 10;
  // Whether max_value bounds all estimators, as in AReaL.
  bool bound_all = false;

  [[nodiscard]] Status Validate() const;
};

// k1, k2, k3 and abs, or verl's names kl, mse and low_var_kl, each also followed by a
// + (straight through). Nothing for another text.
std::optional<KlPenaltyOptions> KlPenaltyFromName(std::string_view name);

// What steers a coefficient (train/kl_controller.h).
struct KlControllerOptions {
  double target = 0;
  double horizon = 10000;
};

// Penalties for the distance from the initial policy, which does not move.
struct InitialKlOptions {
  double loss_coefficient = 0;
  KlPenaltyOptions loss_estimator = {};
  double reward_coefficient = 0;
  KlPenaltyOptions reward_estimator = {.estimator = KlEstimator::kK1};
  KlControllerOptions controller = {};  // of reward_coefficient

  bool active() const { return loss_coefficient > 0 || reward_coefficient > 0; }
};

struct LearningOptions {
  // Each choice with the names of its options that were set, in order.
  AdvantageOptions advantage = {};
  std::vector<std::string> advantage_settings = {};
  LossOptions loss = {};
  std::vector<std::string> loss_settings = {};
  CorrectionOptions correction = {};
  std::vector<std::string> correction_settings = {};
  std::optional<EssLearningRateOptions> ess = std::nullopt;
  std::vector<std::string> ess_settings = {};
  std::optional<OpobOptions> opob = std::nullopt;
  std::vector<std::string> opob_settings = {};

  std::optional<ReductionMode> reduction = std::nullopt;  // none: that of the loss's paper
  RatioReference reference = RatioReference::kRollout;
  RolloutLogprobs rollout_logprobs = RolloutLogprobs::kFull;

  AdamWOptions adamw = {};
  double learning_rate = 1e-6;
  int64_t warmup_updates = 0;
  double max_grad_norm = 1;
  double entropy_bonus = 0;
  ValueHeadOptions value = {};
  InitialKlOptions kl = {};

  int64_t token_budget = 4096;
  int64_t num_threads = 1;
  bool recompute_layers = false;
  ShardMode shard = ShardMode::kNone;
  double memory_gib = 0;
  bool dynamic_sampling = false;
  bool skip_equal_rewards = false;
  int64_t overlong_buffer = 0;
  double overlong_penalty = 1;

  // Whether each group has a greedy response beside those that are trained on.
  bool WantsGreedyResponse() const { return advantage.kind == AdvantageKind::kRemax; }

  [[nodiscard]] std::vector<Field> Fields();
  // Rules that span fields.
  [[nodiscard]] Status Validate() const;
};

}  // namespace pace

#endif  // PACE_CONFIG_TRAIN_OPTIONS_H_
