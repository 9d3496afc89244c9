#include "execution/learner_options.h"

namespace pace {

Result<TrainerOptions> TrainerOptionsOf(const Settings& settings) {
  TrainerOptions options{settings.train};
  options.horizon = static_cast<double>(settings.generation.max_tokens);
  options.temperature = settings.generation.temperature;
  options.num_minibatches = settings.batch.num_updates;
  if (settings.batch.shuffle) options.shuffle_seed = static_cast<uint64_t>(settings.run.seed);
  options.compute_in_bf16 = settings.policy.compute == ComputeType::kBfloat16;
  if (settings.policy.device == PolicyDevice::kCuda) {
    options.device = DeviceKind::kCuda;
    options.num_threads = 1;  // a GPU computes one micro-batch after the other
  }
  PACE_RETURN_IF_ERROR(options.Validate());
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

RolloutOptions RolloutOptionsOf(const Settings& settings) {
  RolloutOptions options;
  switch (settings.engine.sync) {
    case SyncRule::kRebuild:
      options.sync_mode = SyncMode::kReprefill;
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
