// Settings of the trainer: the section `train`.
#ifndef PACE_CONFIG_TRAIN_OPTIONS_H_
#define PACE_CONFIG_TRAIN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

enum class RatioBase { kRollout, kRecomputed };
enum class RolloutLogprobs { kFull, kSampled };

struct LearningOptions {
  std::string advantage = "grpo";
  std::vector<std::string> advantage_settings = {};  // name=value, docs/losses.md
  std::string loss = "ppo";
  std::vector<std::string> loss_settings = {};
  std::string reduction = "auto";  // auto = that of the loss's paper
  // The ratio's reference: what rollouts recorded, or one more forward pass.
  RatioBase ratio = RatioBase::kRollout;
  // What rollouts record: the log-prob of the whole softmax, or of the truncated
  // distribution (top-k, top-p, min-p) that a token was sampled from. They are equal
  // where nothing is cut off.
  RolloutLogprobs rollout_logprobs = RolloutLogprobs::kFull;
  // What sets right data that another policy sampled: none, tis, icepop.
  std::string correction = "none";
  std::vector<std::string> correction_settings = {};

  double learning_rate = 1e-6;
  int64_t warmup_updates = 0;
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double max_grad_norm = 1;
  double entropy_bonus = 0;

  // The value head of `gae`: its own rate, the weight of its loss, the bound of one
  // step's change (0 = none), and whether its loss reaches the layers below.
  double value_learning_rate = 1e-3;
  double value_coef = 0.5;
  double value_clip = 0.5;
  bool value_trunk = false;

  // Penalties for leaving the policy that the run began with, in the loss and in
  // the reward; estimators by name. With a target, the reward's coefficient is
  // steered so that KL per token stays near it.
  double kl_coef = 0;
  std::string kl_estimator = "k3";
  double kl_reward_coef = 0;
  std::string kl_reward_estimator = "k1";
  double kl_target = 0;
  double kl_horizon = 10000;

  // VCPO: a learning rate that falls with the effective sample size, and a
  // baseline weighed by gradient norms.
  bool ess_learning_rate = false;
  std::vector<std::string> ess_settings = {};
  bool opob = false;
  std::vector<std::string> opob_settings = {};

  int64_t token_budget = 4096;  // tokens of one forward pass
  bool recompute_layers = false;
  int64_t threads = 1;
  // Of the GPU, where training shares one with rollouts; 0 = what these leave.
  double memory_gib = 0;

  // Groups whose rewards are all equal teach nothing: give their credit back and
  // start another prompt (DAPO's dynamic sampling).
  bool dynamic_sampling = false;
  // Soft penalty of overlong responses: over this many tokens before the limit.
  int64_t overlong_buffer = 0;
  double overlong_penalty = 1;

  // Whether each group has a greedy response beside those that are trained on.
  bool WantsGreedyResponse() const { return advantage == "remax"; }

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

}  // namespace pace

#endif  // PACE_CONFIG_TRAIN_OPTIONS_H_
