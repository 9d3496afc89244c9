// TrainerOptions: everything that a Trainer can be told.
// Thread-safety: plain data.
#ifndef PACE_TRAIN_TRAINER_OPTIONS_H_
#define PACE_TRAIN_TRAINER_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/status.h"
#include "train/adamw.h"
#include "train/correction/ess_learning_rate.h"
#include "train/correction/opob.h"
#include "train/correction/rollout_correction.h"
#include "train/kl_controller.h"
#include "train/kl_penalty.h"
#include "train/option_reader.h"
#include "train/reduction.h"
#include "train/token_batch.h"

namespace pace {

// The value head of `gae`: one linear row on the last hidden states.
struct ValueHeadOptions {
  double learning_rate = 1e-3;  // of its own AdamW; no warm-up, no decay
  double coefficient = 0.5;     // of its loss in the objective
  double clip = 0.5;            // around the values before the step; 0 = none
  // Whether its loss reaches the layers below. By default it does not: the policy
  // is then trained by the policy loss alone, and a head that still guesses
  // cannot pull the features apart that responses are made of.
  bool trains_trunk = false;

  [[nodiscard]] Status Validate() const;
};

// Penalties for the distance from the initial policy, which does not move.
struct InitialKlOptions {
  // Of the term in the loss; 0 = none.
  double loss_coefficient = 0;
  KlPenaltyOptions loss_estimator = {};
  // Of the term in the reward of each token, before advantages; 0 = none.
  double reward_coefficient = 0;
  KlPenaltyOptions reward_estimator = {.estimator = KlEstimator::kK1};
  KlControllerOptions controller = {};  // of reward_coefficient

  bool active() const { return loss_coefficient > 0 || reward_coefficient > 0; }
  [[nodiscard]] Status Validate() const;
};

struct TrainerOptions {
  // By name, with settings of their own: advantage/advantages.h, loss/losses.h.
  std::string advantage = "grpo";
  NamedSettings advantage_settings = {};
  std::string loss = "ppo";
  NamedSettings loss_settings = {};
  // None: the one of the loss's paper.
  std::optional<ReductionMode> reduction = std::nullopt;
  double horizon = 0;  // of seq-mean-token-sum-norm
  // What the ratio is taken against; kProximal costs a forward pass more.
  RatioReference reference = RatioReference::kRollout;
  CorrectionOptions correction = {};
  double temperature = 1;       // that the rollouts were sampled at
  double entropy_bonus = 0;     // times the mean entropy, added to the objective
  ValueHeadOptions value = {};  // where the estimator asks for values
  InitialKlOptions kl = {};
  // VCPO. `opob` takes one more pass forward and back, response by response; by
  // group it stands in the estimator's place.
  std::optional<EssLearningRateOptions> ess = std::nullopt;
  std::optional<OpobOptions> opob = std::nullopt;

  int64_t num_minibatches = 1;  // updates per step
  int64_t token_budget = 4096;  // tokens of one forward pass
  // Threads that compute micro-batches side by side, each with gradients of its
  // own that are summed at the end. Each needs memory for gradients and for a
  // forward pass.
  int64_t num_threads = 1;

  AdamWOptions adamw = {};
  double learning_rate = 1e-6;
  int64_t warmup_updates = 0;  // over which the rate rises linearly from 0
  int64_t decay_updates = 0;   // it falls to 0 along a cosine until this update; 0 = never
  double max_grad_norm = 1;    // 0 = no clipping

  [[nodiscard]] Status Validate() const;
  // The learning rate of update `update` = 0, 1, ...
  double LearningRate(int64_t update) const;
};

}  // namespace pace

#endif  // PACE_TRAIN_TRAINER_OPTIONS_H_
