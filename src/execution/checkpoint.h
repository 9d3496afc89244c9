// RunCheckpoint: a whole run on disk, as one folder that appears at once.
//
//   checkpoints/step-000040/
//     config.json, model.safetensors, tokenizer.json ...  the model, as any loader reads it
//     optimizer.safetensors                               moments and update count
//     served.safetensors      the weights that engines serve, where they are older
//     coordinator.json        the coordinator's snapshot
//     groups.jsonl            finished responses of groups not yet trained on
//     in_flight.jsonl         responses so far, of groups that run
//     run.json                clock, totals, lengths of the records
//     files.json              every file with its length and checksum, and its own
//
// It is written aside, flushed and renamed; older ones beyond the wanted number
// go afterwards. A folder that is incomplete or damaged, or whose parts do not agree, is
// skipped with a note.
// Thread-safety: functions; one writer per folder.
#ifndef PACE_EXECUTION_CHECKPOINT_H_
#define PACE_EXECUTION_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "coordinator/snapshot.h"
#include "core/clock.h"
#include "core/status.h"
#include "core/version.h"
#include "execution/curriculum.h"
#include "execution/journal.h"
#include "execution/policy.h"
#include "execution/trajectory.h"
#include "model/weight_set.h"
#include "record/step_clock.h"
#include "rollout/request.h"

namespace pace {

struct LearnerState;

// Unfinished responses of one group on one worker.
struct GroupInFlight {
  GroupId group{};
  std::vector<int64_t> members = {};
  std::vector<PartialResponse> responses = {};  // one each
};

// A tool's call that a virtual clock has not seen return; the program is run again.
struct CallInFlight {
  MemberId id{};
  Seconds made{0};
  Seconds due{0};
};

struct RunCheckpoint {
  PolicyVersion step{};    // that a resumed run begins with
  PolicyVersion served{};  // that engines serve
  Seconds time{0};
  StepClock::State step_clock = {};
  Seconds rescoring{0};  // since the last step
  Seconds busy{0};       // of all engines, since the last step
  RunTotals totals = {};
  RunTotals step_totals = {};  // as the last step ended
  CoordinatorSnapshot coordinator = {};
  std::vector<GroupTrajectories> groups = {};
  std::vector<GroupInFlight> in_flight = {};
  std::vector<CallInFlight> calls = {};
  std::map<std::string, int64_t> record_sizes = {};  // of the run's files
};

// `served`: null where engines serve the learner's own weights. Returns the
// folder. Keeps the newest `keep` checkpoints (0 = all).
Result<std::string> SaveCheckpoint(const std::string& checkpoints, const RunCheckpoint& run,
                                   const Policy& policy, const LearnerState& learner,
                                   const WeightSet* served, int64_t keep);

struct LoadedCheckpoint {
  std::string folder = {};
  RunCheckpoint run = {};
};

// The newest whole one. `note` hears of each that was skipped, and why.
Result<LoadedCheckpoint> LoadNewestCheckpoint(const std::string& checkpoints,
                                              const std::function<void(std::string)>& note);

// Of an engine's unfinished request, and back.
GroupInFlight InFlightOf(GroupRequest request);
struct ResumedGroup {
  WorkerId worker{};
  GroupRequest request = {};
};
// `attempt` is Coordinator::AttemptOf the group.
Result<ResumedGroup> ResumeGroup(const GroupInFlight& group, const TrajectoryStore& store,
                                 const Curriculum& curriculum, int64_t attempt);
// served.safetensors of a checkpoint, mapped.
Result<WeightSet> LoadServedWeights(const ModelConfig& config, const std::string& folder);

// The parts in JSON, for tests and fuzzing.
std::string GroupToJson(const GroupTrajectories& group);
Result<GroupTrajectories> GroupFromJson(std::string_view json);
std::string InFlightToJson(const GroupInFlight& group);
Result<GroupInFlight> InFlightFromJson(std::string_view json);
std::string RunToJson(const RunCheckpoint& run);
Status RunFromJson(std::string_view json, RunCheckpoint& run);
// Whether the parts speak of the same groups in the same state, in versions that can
// be: what passes can be taken up without a surprise.
Status CheckAgreement(const RunCheckpoint& run);
// Whether a run with so many engines can take it up.
Status CheckWorkers(const RunCheckpoint& run, int64_t num_engines);

}  // namespace pace

#endif  // PACE_EXECUTION_CHECKPOINT_H_
