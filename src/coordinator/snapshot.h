// CoordinatorSnapshot: all that a coordinator knows, as plain values.
//
// Format and version are written with it; a reader refuses what it does not
// know. ToJson and FromJson are the one file form; FromJson checks types,
// ranges and unknown keys, Coordinator::Restore checks that the parts agree.
#ifndef PACE_COORDINATOR_SNAPSHOT_H_
#define PACE_COORDINATOR_SNAPSHOT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/admission_policy.h"
#include "coordinator/group_table.h"
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
};

std::string ToJson(const CoordinatorSnapshot& snapshot);
// `name` stands in front of errors.
Result<CoordinatorSnapshot> SnapshotFromJson(std::string_view json, const std::string& name);

}  // namespace pace

#endif  // PACE_COORDINATOR_SNAPSHOT_H_
