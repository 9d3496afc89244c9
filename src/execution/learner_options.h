// What the settings mean to the trainer and to the rollout engines.
// Thread-safety: pure functions.
#ifndef PACE_EXECUTION_LEARNER_OPTIONS_H_
#define PACE_EXECUTION_LEARNER_OPTIONS_H_

#include "config/settings.h"
#include "core/status.h"
#include "model/sampling.h"
#include "rollout/engine_core.h"
#include "train/trainer_options.h"

namespace pace {

// An error names the key.
Result<TrainerOptions> TrainerOptionsOf(const Settings& settings);
// A policy that filters by prefix scores needs engines that compute them: an error where
// a sync keeps or drains what runs. `lab`: the driver that also asks cluster.kv_at_sync.
Status CheckPrefixScores(const Settings& settings, bool lab);
RolloutOptions RolloutOptionsOf(const Settings& settings);
SamplingOptions TrainingSampling(const Settings& settings);
Dtype DecoderDtype(const Settings& settings);

}  // namespace pace

#endif  // PACE_EXECUTION_LEARNER_OPTIONS_H_
