// Events and commands: the inputs and outputs of the coordinator. Stable: docs/library.md.
//
// Payloads (tokens, rewards) stay with the driver and are named by group and member.
#ifndef PACE_COORDINATOR_EVENTS_H_
#define PACE_COORDINATOR_EVENTS_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/decision.h"
#include "core/ids.h"
#include "core/staleness.h"
#include "core/version.h"

namespace pace {

// --- events ---

// A worker is ready for commands. It serves no version until its first sync.
struct WorkerJoined {
  WorkerId worker;
  int64_t max_groups = 1;  // that it can run at once
};
// A worker and its unfinished groups are gone. Its id is not used again.
struct WorkerLost {
  WorkerId worker;
};
// One response of a running group has finished.
struct ResponseFinished {
  GroupId group;
  int64_t member = 0;
  std::vector<Segment> segments;  // in generation order, versions never decrease
  std::optional<double> prefix_score;
  int64_t num_bytes = 0;
};
// A running group cannot finish, or is given up.
struct GroupFailed {
  GroupId group;
  bool retry = true;  // whether its prompt may be dispatched again (supply.requeue)
};
// A SyncWeights command has taken effect.
struct WorkerSynced {
  WorkerId worker;
  PolicyVersion version;
};
// The TrainBatch command of this step has been carried out.
struct StepFinished {
  PolicyVersion step;
  // From the end of the step before, and the part of it that the trainer waited for groups; the
  // tokens that all engines sampled in that time. 0 = not measured: drivers measure where
  // SupplyOptions::ReadsTimes().
  double seconds = 0;
  double waited = 0;
  int64_t num_tokens = 0;
};
struct EvaluationFinished {
  PolicyVersion version;
};
struct CheckpointFinished {
  PolicyVersion step;
};
// The run shall finish the update in flight, save and stop.
struct StopRequested {};
// A run that was asked to stop continues from its checkpoint.
struct RunResumed {};

using Event =
    std::variant<WorkerJoined, WorkerLost, ResponseFinished, GroupFailed, WorkerSynced,
                 StepFinished, EvaluationFinished, CheckpointFinished, StopRequested, RunResumed>;

// --- commands ---

struct StartGroup {
  GroupId group;
  WorkerId worker;
  PromptIndex prompt;
  int64_t attempt = 1;  // 2 for the first retry of a prompt
};
// Stop a running group. With keep_prefix its unfinished responses are kept for
// the next group that starts from the same prompt.
struct AbandonGroup {
  GroupId group;
  bool keep_prefix = false;
};
struct SyncWeights {
  WorkerId worker;
  PolicyVersion version;
};
// Train step `step` on these groups, sorted by id.
struct TrainBatch {
  PolicyVersion step;
  std::vector<GroupId> groups;
};
// The payload of a finished group is no longer needed.
struct DropGroup {
  GroupId group;
  Reason reason = Reason::kOverCutoff;
};
struct Evaluate {
  PolicyVersion version;
};
// Pause, deliver the events in flight, save the coordinator and all payloads as one state,
// then answer with CheckpointFinished of the same step. Until then only two commands follow:
// DropGroup, when a finished group overfills the pool, and SyncWeights, so that a driver that
// waits for syncs saves workers that all serve one version.
struct Checkpoint {
  PolicyVersion step;  // that a resumed run begins with
};
// The run has ended; no command follows.
struct Stop {};

using Command = std::variant<StartGroup, AbandonGroup, SyncWeights, TrainBatch, DropGroup, Evaluate,
                             Checkpoint, Stop>;

}  // namespace pace

#endif  // PACE_COORDINATOR_EVENTS_H_
