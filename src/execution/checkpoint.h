// Checkpoints: a whole run on disk, as one folder that appears at once.
//
//   checkpoints/step-000040/
//     config.json, model.safetensors, tokenizer.json ...  the model, as any loader reads it
//     optimizer.safetensors                               moments and update count
//     served.safetensors      the weights that engines serve, where they are older
//     coordinator.json        the coordinator's snapshot
//     groups.bin              finished responses of groups not yet trained on
//     in_flight.bin           responses so far, of groups that run (response_file.h)
//     kept.bin                prefixes of abandoned groups, where there are any
//     run.json                clock, totals, lengths of the records
//     settings.yaml           the run's settings
//     files.json              every file with its length and checksum, and its own
//
// It is written as an atomic folder; older ones beyond the wanted number are removed
// afterwards. A save that fails leaves nothing. A folder that is incomplete or damaged, or
// whose parts do not agree, is skipped with a note. Checkpoints of earlier versions
// (groups.jsonl, in_flight.jsonl, no settings) are read too.
// Thread-safety: functions; one writer per folder.
#ifndef PACE_EXECUTION_CHECKPOINT_H_
#define PACE_EXECUTION_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/version.h"
#include "execution/policy.h"
#include "execution/prompt_source.h"
#include "execution/run_checkpoint.h"
#include "execution/trajectory.h"
#include "model/weight_set.h"
#include "rollout/request.h"

namespace pace {

struct SavedTrainer;

// `served`: null where engines serve the trainer's own weights. Returns the
// folder. Keeps the newest `keep` checkpoints (0 = all).
Result<std::string> SaveCheckpoint(const std::string& checkpoints, const RunCheckpoint& run,
                                   const Policy& policy, const SavedTrainer& trainer,
                                   const WeightSet* served, int64_t keep);

struct LoadedCheckpoint {
  std::string folder = {};
  RunCheckpoint run = {};
};

// Which of a run's checkpoints it goes on from.
enum class ResumeFrom {
  kNewest,
  // The newest that the run would have taken without a stop: one that a stop asked for is
  // passed over. So a lab run goes through the same moments, stopped or not.
  kNewestScheduled,
};

// The newest whole one; none where the run has taken none yet. `note` hears of each that
// was skipped, and why. Where all are damaged it is an error, but one of a stop that is
// whole is taken before that.
Result<std::optional<LoadedCheckpoint>> FindCheckpoint(
    const std::string& checkpoints, ResumeFrom from, const std::function<void(std::string)>& note);
// The same, but having none is an error too.
Result<LoadedCheckpoint> LoadNewestCheckpoint(const std::string& checkpoints,
                                              const std::function<void(std::string)>& note);
// The newest folder by name; empty where there is none.
std::string NewestCheckpointFolder(const std::string& checkpoints);
// What saves that were cut short left behind. REQUIRES: no other process saves here
void RemovePartialCheckpoints(const std::string& checkpoints);

// Of an engine's unfinished request, and back.
GroupInFlight InFlightOf(GroupRequest request);
struct ResumedGroup {
  WorkerId worker{};
  GroupRequest request = {};
};
// `attempt` is Coordinator::AttemptOf the group.
Result<ResumedGroup> ResumeGroup(GroupInFlight group, const TrajectoryStore& store,
                                 const PromptSource& prompt_source, int64_t attempt);
// served.safetensors of a checkpoint, mapped.
Result<WeightSet> LoadServedWeights(const ModelConfig& config, const std::string& folder);

}  // namespace pace

#endif  // PACE_EXECUTION_CHECKPOINT_H_
