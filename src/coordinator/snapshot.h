// CoordinatorSnapshot: the whole state of a coordinator, as plain values.
//
// ToJson writes it with its format version; SnapshotFromJson checks types, ranges, unknown
// keys and the version; Coordinator::Restore checks that the parts agree (CheckSnapshot).
//
// Stable: docs/library.md. The fields are not; use it as a whole.
#ifndef PACE_COORDINATOR_SNAPSHOT_H_
#define PACE_COORDINATOR_SNAPSHOT_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/admission_policy.h"
#include "control/supply_policy.h"
#include "coordinator/group_table.h"
#include "coordinator/options.h"
#include "coordinator/prompt_queue.h"
#include "coordinator/throughput.h"
#include "coordinator/worker_table.h"
#include "core/status.h"
#include "core/version.h"
#include "pool/pool_state.h"

namespace pace {

// Groups trained in one step, whose credits return when every live worker
// serves `needed`.
struct AwaitingSync {
  PolicyVersion needed;
  int64_t num_groups = 0;
};

struct CoordinatorSnapshot {
  static constexpr int64_t kFormatVersion = 1;

  // Of the options: a snapshot restores only into a run of the same shape.
  int64_t batch = 0;
  int64_t group_size = 0;
  int64_t sync_interval = 0;

  int64_t num_events = 0;  // handled before it was taken
  PolicyVersion version;
  PolicyVersion published;
  bool started = false;
  bool gathering = false;
  bool training = false;
  bool checkpointing = false;
  bool stop_requested = false;
  bool final_checkpoint_done = false;
  bool stopped = false;
  std::vector<PolicyVersion> evaluating;

  int64_t num_offered = 0;
  int64_t num_rejected_in_step = 0;
  int64_t num_guarded = 0;
  int64_t num_trained = 0;
  int64_t num_rejected = 0;
  int64_t num_lost = 0;

  std::vector<std::pair<WorkerId, WorkerRecord>> workers;
  GroupId next_group;
  std::vector<std::pair<GroupId, GroupRecord>> groups;
  std::vector<GroupId> selected;
  std::deque<AwaitingSync> awaiting_sync;
  std::vector<PooledGroup> pool;  // in completion order
  int64_t next_prompt = 0;
  std::deque<Dispatch> resumed_prompts, returned_prompts;
  std::deque<Throughput::Step> throughput;
  Throughput::Step current_throughput;
  AdmissionState admission;
  SupplyState supply;
  bool supply_limited = false;
};

std::string ToJson(const CoordinatorSnapshot& snapshot);
// An error begins with `name`.
Result<CoordinatorSnapshot> SnapshotFromJson(std::string_view json, const std::string& name);

// What the run asks of a snapshot.
struct SnapshotRules {
  const CoordinatorOptions& options;
  bool needs_members = false;              // of the admission policy
  std::optional<int64_t> max_outstanding;  // of the supply policy
};

// Whether the parts of a snapshot agree with each other and with the run that resumes it:
// every group is in one state, credits are within the bound, versions are in order, and the
// run can progress. A snapshot that passes restores into a coordinator whose invariants hold.
// An error names the part and the rule, in one line.
Status CheckSnapshot(const CoordinatorSnapshot& snapshot, const SnapshotRules& rules);

}  // namespace pace

#endif  // PACE_COORDINATOR_SNAPSHOT_H_
