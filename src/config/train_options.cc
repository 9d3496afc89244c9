#include "config/train_options.h"

#include <array>
#include <iterator>
#include <span>
#include <utility>

namespace pace {
namespace {

constexpr std::array<std::string_view, 2> kSwitchNames = {"false", "true"};
constexpr std::array<std::string_view, 2> kLogprobNames = {"full", "sampled"};
constexpr std::array<std::string_view, 4> kShardNames = {"none", "optimizer", "gradients", "full"};
constexpr std::array<std::string_view, 2> kRatioNames = {"rollout", "recomputed"};
// Estimators in the order of KlEstimator, plain and straight through, then verl's names.
constexpr std::array<std::string_view, 14> kEstimatorNames = {
    "k1",   "k2", "k3",  "abs",        "k1+", "k2+",  "k3+",
    "abs+", "kl", "mse", "low_var_kl", "kl+", "mse+", "low_var_kl+"};
constexpr size_t kNumEstimators = 4;

// AdvantageOptions and LossOptions: the options of all kinds in one struct.
template <typename Options>
Field::Choice ChoiceOf(std::string key, std::span<const std::string_view> names, Options& options,
                       std::vector<std::string>& given) {
  using Kind = decltype(options.kind);
  return {.key = std::move(key),
          .names = names,
          .get = [&options] { return static_cast<size_t>(options.kind); },
          .choose =
              [&options](size_t index) {
                options = Options{};
                options.kind = static_cast<Kind>(index);
              },
          .options = [&options] { return options.Fields(); },
          .given = &given};
}

// Off, or on with options.
template <typename Options>
Field::Choice SwitchOf(std::string key, std::optional<Options>& options,
                       std::vector<std::string>& given) {
  return {.key = std::move(key),
          .names = kSwitchNames,
          .get = [&options]() -> size_t { return options.has_value() ? 1 : 0; },
          .choose =
              [&options](size_t index) {
                options.reset();
                if (index == 1) options.emplace();
              },
          .options = [&options] { return options ? options->Fields() : std::vector<Field>(); },
          .given = &given};
}

Field::Choice CorrectionOf(std::string key, CorrectionOptions& options,
                           std::vector<std::string>& given) {
  return {.key = std::move(key),
          .names = CorrectionNames(),
          .get = [&options] { return static_cast<size_t>(options.kind()); },
          .choose =
              [&options](size_t index) {
                options = CorrectionOptions::Of(static_cast<CorrectionKind>(index));
              },
          .options = [&options] { return options.Fields(); },
          .given = &given};
}

Field Estimator(std::string key, KlPenaltyOptions& value, std::string doc) {
  return Field::OneOf(
      std::move(key), kEstimatorNames,
      {[&value] {
         return static_cast<size_t>(value.estimator) +
                (value.straight_through ? kNumEstimators : 0);
       },
       [&value](size_t index) { value = *KlPenaltyFromName(kEstimatorNames[index]); }},
      std::move(doc));
}

std::vector<Field> ObjectiveFields(LearningOptions& o) {
  constexpr char kListDoc[] = "Its options as a list of name=value.";
  const auto advantage =
      ChoiceOf("advantage", AdvantageEstimatorNames(), o.advantage, o.advantage_settings);
  const auto loss = ChoiceOf("loss", PolicyLossNames(), o.loss, o.loss_settings);
  const auto correction = CorrectionOf("correction", o.correction, o.correction_settings);
  return {
      Field::Named(advantage, "Advantage estimator (docs/losses.md)."),
      Field::OptionList("advantage_settings", advantage, kListDoc),
      Field::Named(loss, "Policy loss (docs/losses.md)."),
      Field::OptionList("loss_settings", loss, kListDoc),
      Field::OptionalEnum("reduction", o.reduction, kReductionNames,
                          "How the losses of tokens become one number; auto = as in the loss's "
                          "paper."),
      Field::Enum("ratio", o.reference, kRatioNames,
                  "The ratio's reference: recorded log-probs, or one more forward pass."),
      Field::Enum("rollout_logprobs", o.rollout_logprobs, kLogprobNames,
                  "Recorded log-probs are of the whole softmax, or of the truncated distribution "
                  "(top_k, top_p, min_p) that was sampled from; equal where nothing is cut off."),
      Field::Named(correction, "Of off-policy data (docs/losses.md)."),
      Field::OptionList("correction_settings", correction, kListDoc),
  };
}

std::vector<Field> OptimizerFields(LearningOptions& o) {
  return {
      Field::Real("learning_rate", o.learning_rate, "Of AdamW; 0 = a fixed policy.")
          .AtLeast(0)
          .AtMost(1),
      Field::Int("warmup_updates", o.warmup_updates, "Updates over which the rate rises from 0.")
          .AtLeast(0),
      Field::Real("weight_decay", o.adamw.weight_decay, "Of AdamW.").AtLeast(0),
      Field::Real("beta1", o.adamw.beta1, "Of AdamW.").AtLeast(0).AtMost(0.999999),
      Field::Real("beta2", o.adamw.beta2, "Of AdamW.").AtLeast(0).AtMost(0.9999999),
      Field::Real("max_grad_norm", o.max_grad_norm, "Gradients are scaled down to it; 0 = never.")
          .AtLeast(0),
      Field::Real("entropy_bonus", o.entropy_bonus,
                  "Times the mean entropy, added to the objective.")
          .AtLeast(0),
  };
}

std::vector<Field> MethodFields(LearningOptions& o) {
  const auto ess = SwitchOf("ess_learning_rate", o.ess, o.ess_settings);
  const auto opob = SwitchOf("opob", o.opob, o.opob_settings);
  return {
      Field::Real("value_learning_rate", o.value.learning_rate,
                  "Of the value head of the advantage gae.")
          .AtLeast(0)
          .AtMost(1),
      Field::Real("value_coef", o.value.coefficient, "Weight of the value head's loss.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Real("value_clip", o.value.clip,
                  "How far a value may leave the one before the step; 0 = as far as it likes.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Bool("value_trunk", o.value.trains_trunk,
                  "Whether the value loss reaches the layers below the head; a head that still "
                  "guesses then changes the features of the policy."),
      Field::Real("kl_coef", o.kl.loss_coefficient,
                  "Of the KL to the initial policy in the loss; 0 = none.")
          .AtLeast(0)
          .AtMost(1e6),
      Estimator("kl_estimator", o.kl.loss_estimator,
                "Of that KL; a + after the name: with the gradient of k2 (docs/losses.md)."),
      Field::Real("kl_reward_coef", o.kl.reward_coefficient,
                  "Of the KL to the initial policy in the reward of each token; 0 = none.")
          .AtLeast(0)
          .AtMost(1e6),
      Estimator("kl_reward_estimator", o.kl.reward_estimator, "Of the KL in the reward."),
      Field::Real("kl_target", o.kl.controller.target,
                  "KL per token that kl_reward_coef is steered towards; 0 = it stays.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Real("kl_horizon", o.kl.controller.horizon,
                  "Responses over which it is steered; larger: more slowly.")
          .Above(0)
          .AtMost(1e12),
      Field::Named(ess, "Scale each update's rate by the effective sample size (VCPO)."),
      Field::OptionList("ess_settings", ess, "Options of ess_learning_rate: name=value."),
      Field::Named(opob, "VCPO's baseline, from gradient norms; one more pass over each response."),
      Field::OptionList("opob_settings", opob, "Options of opob: name=value."),
  };
}

std::vector<Field> WorkFields(LearningOptions& o) {
  return {
      Field::Int("token_budget", o.token_budget, "Tokens of one training forward pass.")
          .AtLeast(1)
          .AtMost(1e9),
      Field::Bool("recompute_layers", o.recompute_layers,
                  "Compute activations again in the backward pass, to save memory."),
      Field::Int("threads", o.num_threads,
                 "Threads of the trainer; each needs memory for gradients and a forward pass.")
          .AtLeast(1)
          .AtMost(4096),
      Field::Enum("shard", o.shard, kShardNames,
                  "What each of several ranks keeps 1/N of: nothing, the optimizer's moments, also "
                  "gradients, also weights (docs/ranks.md)."),
      Field::Real("memory_gib", o.memory_gib,
                  "The trainer's share of a GPU's memory; 0 = what the engines leave.")
          .AtLeast(0)
          .AtMost(1e5),
      Field::Bool("dynamic_sampling", o.dynamic_sampling,
                  "Replace groups whose rewards are all equal: they teach nothing (DAPO)."),
      Field::Bool("skip_equal_rewards", o.skip_equal_rewards,
                  "Compute nothing for groups whose rewards are all equal. Their gradient is 0, so "
                  "the update is the same, and a step is shorter."),
      Field::Int("overlong_buffer", o.overlong_buffer,
                 "Tokens before the limit over which a penalty grows; 0 = none.")
          .AtLeast(0),
      Field::Real("overlong_penalty", o.overlong_penalty, "That penalty at the limit.").AtLeast(0),
  };
}

// Why a group of equal rewards would have a gradient; null: it has none.
const char* GradientOfEqualRewards(const LearningOptions& options) {
  const AdvantageKind advantage = options.advantage.kind;
  if (advantage != AdvantageKind::kGrpo && advantage != AdvantageKind::kDrGrpo) {
    return "train.advantage must be grpo or dr_grpo";
  }
  switch (options.loss.kind) {
    case LossKind::kCispo:
    case LossKind::kDapo:
    case LossKind::kDecoupledPpo:
    case LossKind::kDis:
    case LossKind::kGspo:
    case LossKind::kM2po:
    case LossKind::kPpo:
    case LossKind::kReinforce:
      break;
    default:
      return "train.loss has terms without an advantage";
  }
  if (options.kl.active()) return "train.kl_* must be 0";
  if (options.entropy_bonus != 0) return "train.entropy_bonus must be 0";
  if (options.opob.has_value()) return "train.opob must be false";
  if (options.ess.has_value()) return "train.ess_learning_rate must be false";
  return nullptr;
}

}  // namespace

std::string_view ShardModeName(ShardMode mode) {
  return kShardNames.at(static_cast<size_t>(mode));
}

Status KlPenaltyOptions::Validate() const {
  if (max_log_ratio.has_value() && !(*max_log_ratio > 0)) {
    return InvalidArgument("kl.max_log_ratio = ", *max_log_ratio, ": must be positive");
  }
  if (max_value.has_value() && !(*max_value > 0)) {
    return InvalidArgument("kl.max_value = ", *max_value, ": must be positive");
  }
  return Status::Ok();
}

std::optional<KlPenaltyOptions> KlPenaltyFromName(std::string_view name) {
  KlPenaltyOptions options;
  options.straight_through = name.ends_with('+');
  if (options.straight_through) name.remove_suffix(1);
  if (name == "kl") name = "k1";
  if (name == "mse") name = "k2";
  if (name == "low_var_kl") name = "k3";
  for (size_t i = 0; i < kNumEstimators; ++i) {
    if (kEstimatorNames[i] != name) continue;
    options.estimator = static_cast<KlEstimator>(i);
    return options;
  }
  return std::nullopt;
}

std::vector<Field> LearningOptions::Fields() {
  std::vector<Field> all;
  for (const auto& list : {ObjectiveFields, OptimizerFields, MethodFields, WorkFields}) {
    std::vector<Field> part = list(*this);
    std::move(part.begin(), part.end(), std::back_inserter(all));
  }
  return all;
}

Status LearningOptions::Validate() const {
  PACE_RETURN_IF_ERROR(loss.Validate().At("train.loss"));
  PACE_RETURN_IF_ERROR(advantage.Validate().At("train.advantage"));
  PACE_RETURN_IF_ERROR(correction.Validate().At("train.correction"));
  if (kl.controller.target > 0 && kl.reward_coefficient == 0) {
    return InvalidArgument("train.kl_target = ", kl.controller.target,
                           ": steers train.kl_reward_coef, which is 0 (say where it begins)");
  }
  if (kl.reward_estimator.straight_through) {
    return InvalidArgument("train.kl_reward_estimator: a + chooses a gradient, and a reward has ",
                           "none (leave it out)");
  }
  const char* const gradient = skip_equal_rewards ? GradientOfEqualRewards(*this) : nullptr;
  if (gradient != nullptr) {
    return InvalidArgument("train.skip_equal_rewards = true: ", gradient,
                           ", or groups of equal rewards have a gradient");
  }
  if (!opob.has_value() || opob->scope == OpobOptions::Scope::kMinibatch ||
      advantage.kind == AdvantageKind::kGrpo) {
    return Status::Ok();
  }
  return InvalidArgument("train.opob = true: brings a baseline of its own, so train.advantage = ",
                         AdvantageEstimatorNames()[static_cast<size_t>(advantage.kind)],
                         " would not be asked (leave it at grpo, or set "
                         "train.opob.scope=minibatch)");
}

}  // namespace pace
