// A trainer's state on disk: the model's weights in the Hugging Face layout, and
// optimizer.safetensors with moments, counters and a value head.
//
//   PACE_ASSIGN_OR_RETURN(TrainerState state, trainer->Copy());
//   PACE_RETURN_IF_ERROR(SaveTrainerState(folder, policy, {.state = state}));
//   PACE_ASSIGN_OR_RETURN(const SavedTrainer saved, LoadTrainerState(policy.config, folder));
//   PACE_RETURN_IF_ERROR(trainer->Restore(saved.state));
//
// The initial policy of KL penalties is not saved: its checksum shows whether it is still
// the same. Thread-safety: functions.
#ifndef PACE_EXECUTION_TRAINER_STATE_H_
#define PACE_EXECUTION_TRAINER_STATE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/status.h"
#include "execution/policy.h"
#include "train/trainer.h"

namespace pace {

struct SavedTrainer {
  TrainerState state = {};
  // Of the weights that the run started from, where penalties measure the distance from
  // them.
  std::optional<uint32_t> initial_checksum = {};
};

uint32_t ChecksumOf(const WeightSet& weights);

// `folder` exists and is empty.
Status SaveTrainerState(const std::string& folder, const Policy& policy, const SavedTrainer& saved);
// The tensors are mapped files.
Result<SavedTrainer> LoadTrainerState(const ModelConfig& config, const std::string& folder);

}  // namespace pace

#endif  // PACE_EXECUTION_TRAINER_STATE_H_
