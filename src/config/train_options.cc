#include "config/train_options.h"

#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/printable.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 2> kLogprobNames = {"full", "sampled"};
constexpr std::array<std::string_view, 2> kRatioNames = {"rollout", "recomputed"};

Status CheckAssignments(std::string_view key, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) {
    const size_t at = assignment.find('=');
    if (at == 0 || at == std::string::npos || at + 1 == assignment.size()) {
      return InvalidArgument(key, " = ", Printable(assignment), ": must be name=value");
    }
  }
  return Status::Ok();
}

// Settings of something that is off would be read by nobody.
Status CheckUse(std::string_view key, const std::vector<std::string>& settings,
                std::string_view owner, bool on) {
  PACE_RETURN_IF_ERROR(CheckAssignments(key, settings));
  if (on || settings.empty()) return Status::Ok();
  return InvalidArgument(key, " = ", Printable(settings.front()), ": ", owner,
                         " is false (set it to true, or leave its settings out)");
}

std::vector<Field> ObjectiveFields(LearningOptions& o) {
  return {
      Field::Text("advantage", o.advantage, "Estimator by name (docs/losses.md)."),
      Field::TextList("advantage_settings", o.advantage_settings, "Its settings, name=value."),
      Field::Text("loss", o.loss, "Policy loss by name (docs/losses.md)."),
      Field::TextList("loss_settings", o.loss_settings, "Its settings, name=value."),
      Field::Text("reduction", o.reduction,
                  "token-mean, token-sum, seq-mean-token-sum, seq-mean-token-mean, "
                  "seq-mean-token-sum-norm; auto = that of the loss's paper."),
      Field::Enum("ratio", o.ratio, kRatioNames,
                  "The ratio's reference: recorded log-probs, or one more forward pass."),
      Field::Enum("rollout_logprobs", o.rollout_logprobs, kLogprobNames,
                  "Recorded log-probs are of the whole softmax, or of the truncated distribution "
                  "(top_k, top_p, min_p) that was sampled from."),
      Field::Text("correction", o.correction,
                  "Of off-policy data: none, tis or icepop (docs/losses.md)."),
      Field::TextList("correction_settings", o.correction_settings, "Its settings, name=value."),
  };
}

std::vector<Field> OptimizerFields(LearningOptions& o) {
  return {
      Field::Real("learning_rate", o.learning_rate, "Of AdamW; 0 = a fixed policy.")
          .AtLeast(0)
          .AtMost(1),
      Field::Int("warmup_updates", o.warmup_updates, "Updates over which the rate rises from 0.")
          .AtLeast(0),
      Field::Real("weight_decay", o.weight_decay, "Of AdamW.").AtLeast(0),
      Field::Real("beta1", o.beta1, "Of AdamW.").AtLeast(0).AtMost(0.999999),
      Field::Real("beta2", o.beta2, "Of AdamW.").AtLeast(0).AtMost(0.9999999),
      Field::Real("max_grad_norm", o.max_grad_norm, "Gradients are scaled down to it; 0 = never.")
          .AtLeast(0),
      Field::Real("entropy_bonus", o.entropy_bonus,
                  "Times the mean entropy, added to the objective.")
          .AtLeast(0),
  };
}

std::vector<Field> MethodFields(LearningOptions& o) {
  return {
      Field::Real("value_learning_rate", o.value_learning_rate,
                  "Of the value head of the advantage gae.")
          .AtLeast(0)
          .AtMost(1),
      Field::Real("value_coef", o.value_coef, "Weight of the value head's loss.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Real("value_clip", o.value_clip,
                  "How far a value may leave the one before the step; 0 = as far as it likes.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Bool("value_trunk", o.value_trunk,
                  "Whether the value loss reaches the layers below the head."),
      Field::Real("kl_coef", o.kl_coef, "Of the KL to the initial policy in the loss; 0 = none.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Text("kl_estimator", o.kl_estimator,
                  "k1, k2, k3 or abs; a + behind it: with the gradient of k2 (docs/losses.md)."),
      Field::Real("kl_reward_coef", o.kl_reward_coef,
                  "Of the KL to the initial policy in the reward; 0 = none.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Text("kl_reward_estimator", o.kl_reward_estimator, "The same for the reward."),
      Field::Real("kl_target", o.kl_target,
                  "KL per token that kl_reward_coef is steered towards; 0 = it stays.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Real("kl_horizon", o.kl_horizon,
                  "Responses over which it is steered; larger: more slowly.")
          .Above(0)
          .AtMost(1e12),
      Field::Bool("ess_learning_rate", o.ess_learning_rate,
                  "Scale each update's rate by the effective sample size (VCPO)."),
      Field::TextList("ess_settings", o.ess_settings,
                      "rule, base_ratio, max_weight, bounded: name=value (docs/losses.md)."),
      Field::Bool("opob", o.opob,
                  "VCPO's baseline, from gradient norms; one more pass over each response."),
      Field::TextList("opob_settings", o.opob_settings,
                      "scope, aggregation, use_weights, max_weight, normalize_by_length, "
                      "standardize: name=value (docs/losses.md)."),
  };
}

std::vector<Field> WorkFields(LearningOptions& o) {
  return {
      Field::Int("token_budget", o.token_budget, "Tokens of one training forward pass.")
          .AtLeast(1)
          .AtMost(1e9),
      Field::Bool("recompute_layers", o.recompute_layers,
                  "Compute activations again in the backward pass, to save memory."),
      Field::Int("threads", o.threads, "Threads of the trainer.").AtLeast(1).AtMost(4096),
      Field::Real("memory_gib", o.memory_gib,
                  "The trainer's share of a GPU's memory; 0 = what the engines leave.")
          .AtLeast(0)
          .AtMost(1e5),
      Field::Bool("dynamic_sampling", o.dynamic_sampling,
                  "Replace groups whose rewards are all equal (DAPO)."),
      Field::Int("overlong_buffer", o.overlong_buffer,
                 "Tokens before the limit over which a penalty grows; 0 = none.")
          .AtLeast(0),
      Field::Real("overlong_penalty", o.overlong_penalty, "That penalty at the limit.").AtLeast(0),
  };
}

}  // namespace

std::vector<Field> LearningOptions::Fields() {
  std::vector<Field> all;
  for (const auto& list : {ObjectiveFields, OptimizerFields, MethodFields, WorkFields}) {
    std::vector<Field> part = list(*this);
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

Status LearningOptions::Validate() const {
  PACE_RETURN_IF_ERROR(CheckAssignments("train.loss_settings", loss_settings));
  PACE_RETURN_IF_ERROR(CheckAssignments("train.advantage_settings", advantage_settings));
  PACE_RETURN_IF_ERROR(CheckAssignments("train.correction_settings", correction_settings));
  PACE_RETURN_IF_ERROR(
      CheckUse("train.ess_settings", ess_settings, "train.ess_learning_rate", ess_learning_rate));
  PACE_RETURN_IF_ERROR(CheckUse("train.opob_settings", opob_settings, "train.opob", opob));
  if (kl_target > 0 && kl_reward_coef == 0) {
    return InvalidArgument("train.kl_target = ", kl_target,
                           ": steers train.kl_reward_coef, which is 0 (say where it begins)");
  }
  return Status::Ok();
}

}  // namespace pace
