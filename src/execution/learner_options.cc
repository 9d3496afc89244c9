#include "execution/learner_options.h"

#include <string>
#include <vector>

#include "core/printable.h"

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

}  // namespace

Result<TrainerOptions> TrainerOptionsOf(const Settings& settings) {
  const LearningOptions& train = settings.train;
  TrainerOptions options;
  options.advantage = train.advantage;
  options.advantage_settings = ParseSettings(train.advantage_settings);
  options.loss = train.loss;
  options.loss_settings = ParseSettings(train.loss_settings);
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
  options.temperature = settings.generation.temperature;
  options.entropy_bonus = train.entropy_bonus;
  options.num_minibatches = settings.batch.num_updates;
  options.token_budget = train.token_budget;
  options.num_threads = train.threads;
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

TrainingNetwork::Options NetworkOptionsOf(const Settings& settings) {
  TrainingNetwork::Options options;
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
