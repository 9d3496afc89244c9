#include "execution/learner_options.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/printable.h"
#include "train/advantage/advantages.h"
#include "train/loss/losses.h"

namespace pace {
namespace {

NamedSettings ParseSettings(const std::vector<std::string>& assignments) {
  NamedSettings settings;
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    settings.push_back({assignment.substr(0, equals), assignment.substr(equals + 1)});
  }
  return settings;
}

template <typename Options>
Status ReadSettings(const std::vector<std::string>& assignments, std::string_view owner,
                    Options& options) {
  const NamedSettings settings = ParseSettings(assignments);
  OptionReader reader(owner, settings);
  options.Read(reader);
  PACE_RETURN_IF_ERROR(reader.Finish());
  return options.Validate().At(std::string(owner));
}

// Says of which key a chosen thing complains: its name, or its settings.
Status AtKey(const Status& status, const std::string& key, std::span<const std::string_view> names,
             const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) return status.At(key);
  return InvalidArgument(key, "_settings: ", status.message(), " (", key,
                         "_settings= leaves out those of the preset)");
}

Status CheckNames(const TrainerOptions& options) {
  const auto advantage = MakeAdvantageEstimator(options.advantage, options.advantage_settings);
  if (!advantage.ok()) {
    return AtKey(advantage.status(), "train.advantage", AdvantageEstimatorNames(),
                 options.advantage);
  }
  const auto loss = MakePolicyLoss(options.loss, options.loss_settings);
  if (loss.ok()) return Status::Ok();
  const auto estimators = AdvantageEstimatorNames();
  if (std::find(estimators.begin(), estimators.end(), options.loss) != estimators.end()) {
    return InvalidArgument("train.loss = ", options.loss,
                           ": is an advantage here (train.advantage=", options.loss,
                           " train.loss=ppo)");
  }
  return AtKey(loss.status(), "train.loss", PolicyLossNames(), options.loss);
}

Status ReadEstimator(std::string_view key, const std::string& name, KlPenaltyOptions& out) {
  const std::optional<KlPenaltyOptions> found = KlPenaltyFromName(name);
  if (!found.has_value()) {
    return InvalidArgument(key, " = ", Printable(name),
                           ": must be k1, k2, k3 or abs, or verl's kl, mse or low_var_kl; each "
                           "also with a + behind it");
  }
  out = *found;
  return Status::Ok();
}

Status ReadKl(const LearningOptions& train, InitialKlOptions& kl) {
  kl.loss_coefficient = train.kl_coef;
  kl.reward_coefficient = train.kl_reward_coef;
  kl.controller = {.target = train.kl_target, .horizon = train.kl_horizon};
  PACE_RETURN_IF_ERROR(ReadEstimator("train.kl_estimator", train.kl_estimator, kl.loss_estimator));
  PACE_RETURN_IF_ERROR(
      ReadEstimator("train.kl_reward_estimator", train.kl_reward_estimator, kl.reward_estimator));
  if (!kl.reward_estimator.straight_through) return Status::Ok();
  return InvalidArgument("train.kl_reward_estimator = ", Printable(train.kl_reward_estimator),
                         ": a + chooses a gradient, and a reward has none (leave it out)");
}

Status ReadVcpo(const LearningOptions& train, TrainerOptions& options) {
  if (train.ess_learning_rate) {
    PACE_RETURN_IF_ERROR(
        ReadSettings(train.ess_settings, "train.ess_settings", options.ess.emplace()));
  }
  if (!train.opob) return Status::Ok();
  OpobOptions& opob = options.opob.emplace();
  PACE_RETURN_IF_ERROR(ReadSettings(train.opob_settings, "train.opob_settings", opob));
  if (opob.scope == OpobOptions::Scope::kMinibatch || train.advantage == "grpo") {
    return Status::Ok();
  }
  return InvalidArgument("train.opob = true: brings a baseline of its own, so train.advantage = ",
                         Printable(train.advantage),
                         " would not be asked (leave it at grpo, or add scope=minibatch to "
                         "train.opob_settings)");
}

}  // namespace

Result<TrainerOptions> TrainerOptionsOf(const Settings& settings) {
  const LearningOptions& train = settings.train;
  TrainerOptions options;
  options.advantage = train.advantage;
  options.advantage_settings = ParseSettings(train.advantage_settings);
  options.loss = train.loss;
  options.loss_settings = ParseSettings(train.loss_settings);
  PACE_RETURN_IF_ERROR(CheckNames(options));
  if (train.reduction != "auto") {
    options.reduction = ReductionModeFromName(train.reduction);
    if (!options.reduction.has_value()) {
      return InvalidArgument("train.reduction = ", Printable(train.reduction),
                             ": must be auto, token-mean, token-sum, seq-mean-token-sum, "
                             "seq-mean-token-mean or seq-mean-token-sum-norm");
    }
  }
  options.horizon = static_cast<double>(settings.generation.max_tokens);
  options.reference =
      train.ratio == RatioBase::kRollout ? RatioReference::kRollout : RatioReference::kProximal;
  const Result<CorrectionOptions> correction =
      MakeCorrection(train.correction, ParseSettings(train.correction_settings));
  if (!correction.ok()) return correction.status().At("train.correction");
  options.correction = *correction;
  options.value = {.learning_rate = train.value_learning_rate,
                   .coefficient = train.value_coef,
                   .clip = train.value_clip,
                   .trains_trunk = train.value_trunk};
  PACE_RETURN_IF_ERROR(ReadKl(train, options.kl));
  PACE_RETURN_IF_ERROR(ReadVcpo(train, options));
  options.temperature = settings.generation.temperature;
  options.entropy_bonus = train.entropy_bonus;
  options.num_minibatches = settings.batch.num_updates;
  options.token_budget = train.token_budget;
  // A GPU computes one micro-batch after the other.
  options.num_threads = settings.policy.device == PolicyDevice::kCuda ? 1 : train.threads;
  options.adamw = {.beta1 = train.beta1,
                   .beta2 = train.beta2,
                   .epsilon = 1e-8,
                   .weight_decay = train.weight_decay};
  options.learning_rate = train.learning_rate;
  options.warmup_updates = train.warmup_updates;
  options.max_grad_norm = train.max_grad_norm;
  PACE_RETURN_IF_ERROR(options.Validate().At("train"));
  return options;
}

Status CheckPrefixScores(const Settings& settings, bool lab) {
  const bool filters = settings.admission.policy != AdmissionKind::kAcceptAll;
  if (!filters || !settings.admission.UsesPrefixScores()) return Status::Ok();
  const char* key = nullptr;
  if (settings.engine.sync == SyncRule::kKeep) key = "engine.sync = keep";
  if (settings.engine.sync == SyncRule::kDrain) key = "engine.sync = drain";
  if (lab && settings.cluster.kv_at_sync == KvAtSync::kKeep) key = "cluster.kv_at_sync = keep";
  if (key == nullptr) return Status::Ok();
  return InvalidArgument(key, ": yields no prefix scores, so admission would weigh all generation ",
                         "staleness by 1 (recompute at a sync, or choose --method raw)");
}

TrainingNetwork::Options NetworkOptionsOf(const Settings& settings) {
  TrainingNetwork::Options options;
  if (settings.policy.device == PolicyDevice::kCuda) options.device = at::kCUDA;
  options.compute_in_bf16 = settings.policy.compute == ComputeType::kBfloat16;
  options.recompute_layers = settings.train.recompute_layers;
  return options;
}

RolloutOptions RolloutOptionsOf(const Settings& settings) {
  RolloutOptions options;
  switch (settings.engine.sync) {
    case SyncRule::kRebuild:
      options.sync_mode = SyncMode::kRebuild;
      break;
    case SyncRule::kKeep:
      options.sync_mode = SyncMode::kKeep;
      break;
    case SyncRule::kDrain:
      options.sync_mode = SyncMode::kDrain;
      break;
  }
  options.score_prefixes = settings.admission.UsesPrefixScores();
  options.min_scored = settings.prefix.min_tokens;
  options.max_scored = settings.prefix.max_tokens;
  options.max_pass_tokens = settings.engine.pass_tokens;
  options.max_running = settings.engine.slots;
  return options;
}

SamplingOptions TrainingSampling(const Settings& settings) {
  const ResponseOptions& generation = settings.generation;
  return {.temperature = generation.temperature,
          .top_k = generation.top_k,
          .top_p = generation.top_p,
          .min_p = generation.min_p};
}

Dtype DecoderDtype(const Settings& settings) {
  return settings.policy.compute == ComputeType::kBfloat16 ? Dtype::kBF16 : Dtype::kF32;
}

}  // namespace pace
