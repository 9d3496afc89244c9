// RunCheckpoint: the state of a run besides its weights, and its form on disk.
//
//   PACE_RETURN_IF_ERROR(RunFromJson(text, run).At(path));
//   PACE_RETURN_IF_ERROR(CheckAgreement(run));
//
// checkpoint.h saves and loads whole checkpoints. This part needs no LibTorch.
// Thread-safety: functions and values.
#ifndef PACE_EXECUTION_RUN_CHECKPOINT_H_
#define PACE_EXECUTION_RUN_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/snapshot.h"
#include "core/clock.h"
#include "core/status.h"
#include "core/version.h"
#include "execution/response_file.h"
#include "execution/run_journal.h"
#include "execution/trajectory.h"
#include "record/run_warnings.h"
#include "record/step_clock.h"

namespace pace {

// A tool's call that a virtual clock has not seen return; the program is run again.
struct CallInFlight {
  MemberId id{};
  Seconds made{0};
  Seconds due{0};
};

// What the environment of an unfinished response said so far. `id.group` is the prompt's index
// for responses that are kept for the next group of their prompt.
struct SavedEnvironment {
  MemberId id{};
  bool kept = false;
  EnvironmentRecord record = {};
};

struct RunCheckpoint {
  PolicyVersion step{};    // that a resumed run begins with
  PolicyVersion served{};  // that engines serve
  Seconds time{0};
  StepClock::State step_clock = {};
  Seconds rescoring{0};     // since the last step
  Seconds busy{0};          // of all engines, since the last step
  int64_t num_sampled = 0;  // tokens of all engines, since the last step
  RunTotals totals = {};
  RunTotals step_totals = {};  // as the last step ended
  RunWarnings::State warnings = {};
  // Of a step that has begun and waits for groups; none otherwise, and in earlier versions.
  std::optional<RunJournal::UnderWay> under_way = {};
  CoordinatorSnapshot coordinator = {};
  std::vector<GroupTrajectories> groups = {};
  std::vector<GroupInFlight> in_flight = {};
  std::vector<CallInFlight> calls = {};
  std::vector<SavedEnvironment> environments = {};
  // Prefixes of abandoned groups, for the next group of the same prompt: `group` is the
  // prompt's index.
  std::vector<GroupInFlight> kept = {};
  std::map<std::string, int64_t> record_sizes = {};  // of the run's files
  // The run's settings as YAML, and who wrote the checkpoint; empty in those of earlier
  // versions.
  std::string settings = {};
  std::string version = {};
  std::string commit = {};
};

// The parts as JSON. Groups are read only: they are written in binary now.
Result<GroupTrajectories> GroupFromJson(std::string_view json);
Result<GroupInFlight> InFlightFromJson(std::string_view json);
std::string RunToJson(const RunCheckpoint& run);
Status RunFromJson(std::string_view json, RunCheckpoint& run);

// Whether the parts describe the same groups in the same state, in versions that are
// possible. What passes can be resumed.
Status CheckAgreement(const RunCheckpoint& run);
// Whether engines 0, 1, ... of this number can take over from its workers.
Status CheckWorkers(const RunCheckpoint& run, int64_t num_engines);

}  // namespace pace

#endif  // PACE_EXECUTION_RUN_CHECKPOINT_H_
