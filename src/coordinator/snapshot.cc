#include "coordinator/snapshot.h"

#include <algorithm>
#include <map>
#include <set>

#include "coordinator/event_json.h"

namespace pace {
namespace {

// No run is longer; products of versions and batches stay far from overflow.
constexpr int64_t kMaxVersion = 1000000000;
// Ids between the oldest live group and the next one; a few bytes each hundred.
constexpr int64_t kMaxIdSpan = 1000000000;

// The snapshot belongs to a run like this one, and its step makes sense.
Status CheckShape(const CoordinatorSnapshot& snapshot, const SnapshotRules& rules) {
  const auto differs = [](const char* name, int64_t saved, int64_t ours) {
    return InvalidArgument(name, " = ", saved, ": this run has ", ours,
                           " (resume with the settings the snapshot was made with)");
  };
  if (snapshot.batch != rules.options.batch)
    return differs("batch", snapshot.batch, rules.options.batch);
  if (snapshot.group_size != rules.options.group_size) {
    return differs("group_size", snapshot.group_size, rules.options.group_size);
  }
  if (snapshot.sync_interval != rules.options.sync_interval) {
    return differs("sync_interval", snapshot.sync_interval, rules.options.sync_interval);
  }
  if (snapshot.version.step() > kMaxVersion) {
    return InvalidArgument("version = ", snapshot.version, ": must be <= ", kMaxVersion);
  }
  if (snapshot.published > snapshot.version) {
    return InvalidArgument("published = ", snapshot.published,
                           ": must be <= version = ", snapshot.version);
  }
  if ((snapshot.gathering || snapshot.training) &&
      snapshot.admission.plan.step != snapshot.version) {
    return InvalidArgument("admission.plan.step = ", snapshot.admission.plan.step,
                           ": must be the version = ", snapshot.version, " of the step under way");
  }
  const auto num_selected = static_cast<int64_t>(snapshot.selected.size());
  const bool step_fits = snapshot.training    ? num_selected == rules.options.batch
                         : snapshot.gathering ? num_selected < rules.options.batch
                                              : num_selected == 0;
  if (!step_fits || (snapshot.training && snapshot.gathering)) {
    return InvalidArgument("selected: ", num_selected, " groups do not fit the step's state");
  }
  return Status::Ok();
}

Status CheckWorkers(const CoordinatorSnapshot& snapshot) {
  std::map<WorkerId, int64_t> num_running;
  for (const auto& [id, record] : snapshot.groups) {
    if (record.state == GroupState::kRunning) ++num_running[record.worker];
  }
  std::set<WorkerId> workers;
  for (const auto& [id, record] : snapshot.workers) {
    const bool goes_back = record.served.has_value() && record.in_flight.has_value() &&
                           *record.in_flight <= *record.served;
    if (!workers.insert(id).second || record.max_groups < 1 || goes_back ||
        (record.promised().has_value() && *record.promised() > snapshot.published)) {
      return InvalidArgument("workers: worker ", id,
                             ": listed twice, without room, or ahead of the published version");
    }
    if (record.num_running != num_running[id] || record.num_running > record.max_groups ||
        (record.num_running > 0 && !record.promised().has_value())) {
      return InvalidArgument("workers: worker ", id, ": num_running = ", record.num_running,
                             " does not match its groups");
    }
    num_running.erase(id);
  }
  if (!num_running.empty()) {
    return InvalidArgument("workers: worker ", num_running.begin()->first,
                           ": has groups but is not listed");
  }
  return Status::Ok();
}

Status CheckRunning(const CoordinatorSnapshot& snapshot, const SnapshotRules& rules) {
  if (!snapshot.groups.empty() &&
      snapshot.next_group.value() - snapshot.groups.front().first.value() > kMaxIdSpan) {
    return InvalidArgument("groups: group ", snapshot.groups.front().first, ": is more than ",
                           kMaxIdSpan, " groups older than next_group");
  }
  GroupId next(0);
  for (const auto& [id, record] : snapshot.groups) {
    if (id < next || id >= snapshot.next_group) {
      return InvalidArgument("groups: id ", id,
                             ": must grow and stay below next_group = ", snapshot.next_group);
    }
    next = GroupId(id.value() + 1);
    if (record.dispatched > snapshot.published) {
      return InvalidArgument("groups: group ", id, ": dispatched after the published version");
    }
    if (record.state != GroupState::kRunning) continue;
    int64_t num_finished = 0;
    for (const MemberSummary& member : record.members) {
      num_finished += member.num_tokens > 0;
      if (member.completed > snapshot.version || member.oldest > member.completed) {
        return InvalidArgument("groups: group ", id, ": a member completed after version ",
                               snapshot.version);
      }
    }
    if (num_finished != record.num_finished || num_finished >= rules.options.group_size ||
        static_cast<int64_t>(record.members.size()) != rules.options.group_size) {
      return InvalidArgument("groups: group ", id, ": its members do not fit");
    }
  }
  return Status::Ok();
}

// Every pooled group is in the pool and every selected one in the batch, once.
Status CheckPoolAndBatch(const CoordinatorSnapshot& snapshot, const SnapshotRules& rules) {
  std::set<GroupId> pooled, selected;
  for (const auto& [id, record] : snapshot.groups) {
    if (record.state == GroupState::kPooled) pooled.insert(id);
    if (record.state == GroupState::kSelected) selected.insert(id);
  }
  int64_t num_bytes = 0;
  for (const PooledGroup& group : snapshot.pool) {
    num_bytes += group.summary.num_bytes;
    if (group.summary.num_bytes > kLargestBytes * rules.options.group_size) {
      return InvalidArgument("pool: group ", group.summary.id,
                             ": num_bytes = ", group.summary.num_bytes,
                             ": must be <= ", kLargestBytes * rules.options.group_size);
    }
    // Older snapshots count a greedy member, too.
    const auto fits = [&rules](int64_t count) {
      const int64_t size = rules.options.group_size;
      return count == size || (rules.options.greedy_last && count == size - 1);
    };
    const bool members_fit =
        group.members.empty() ? !rules.needs_members : fits(std::ssize(group.members));
    if (pooled.erase(group.summary.id) != 1 || group.summary.assembled > snapshot.version ||
        !fits(group.summary.num_members) || !members_fit) {
      return InvalidArgument("pool: group ", group.summary.id, ": is not a pooled group of ",
                             rules.options.group_size, " members");
    }
  }
  const auto num_pooled = static_cast<int64_t>(snapshot.pool.size());
  const PoolOptions& bounds = rules.options.pool;
  if ((bounds.max_groups > 0 && num_pooled > std::max<int64_t>(1, bounds.max_groups)) ||
      (bounds.max_bytes > 0 && num_pooled > 1 && num_bytes > bounds.max_bytes)) {
    return InvalidArgument("pool: ", num_pooled, " groups of ", num_bytes,
                           " bytes pass the pool's bounds");
  }
  for (const GroupId id : snapshot.selected) {
    if (selected.erase(id) != 1) {
      return InvalidArgument("selected: group ", id, ": is not a selected group");
    }
  }
  if (!pooled.empty() || !selected.empty()) {
    return InvalidArgument("groups: group ", pooled.empty() ? *selected.begin() : *pooled.begin(),
                           ": is in no pool and no batch");
  }
  return Status::Ok();
}

Status CheckCredits(const CoordinatorSnapshot& snapshot, const SnapshotRules& rules) {
  if (snapshot.num_trained != snapshot.version.step() * rules.options.batch) {
    return InvalidArgument("num_trained = ", snapshot.num_trained, ": must be version * batch = ",
                           snapshot.version.step() * rules.options.batch);
  }
  const int64_t accounted = static_cast<int64_t>(snapshot.groups.size()) + snapshot.num_trained +
                            snapshot.num_rejected + snapshot.num_lost;
  if (snapshot.next_group.value() != accounted) {
    return InvalidArgument("next_group = ", snapshot.next_group, ": ", accounted,
                           " groups are accounted for");
  }
  PolicyVersion needed(0);
  int64_t num_awaiting = 0;
  for (const AwaitingSync& awaiting : snapshot.awaiting_sync) {
    if (awaiting.needed < needed || awaiting.num_groups != rules.options.batch) {
      return InvalidArgument("awaiting_sync: version ", awaiting.needed,
                             ": must not fall, each with a batch of groups");
    }
    needed = awaiting.needed;
    num_awaiting += awaiting.num_groups;
  }
  const int64_t outstanding = num_awaiting + static_cast<int64_t>(snapshot.groups.size());
  if (const auto bound = rules.max_outstanding; bound.has_value() && outstanding > *bound) {
    return InvalidArgument("groups: ", outstanding, " credits are out, the supply allows ", *bound);
  }
  return Status::Ok();
}

// A state that can be reached is never stuck.
Status CheckProgress(const CoordinatorSnapshot& snapshot, const SnapshotRules& rules) {
  const bool ended = snapshot.stopped || snapshot.stop_requested ||
                     snapshot.version.step() >= rules.options.num_steps;
  if (snapshot.workers.empty() || ended || snapshot.training || snapshot.checkpointing) {
    return Status::Ok();
  }
  if (!snapshot.pool.empty()) {
    return InvalidArgument("pool: ", snapshot.pool.size(), " groups wait while the trainer idles");
  }
  for (const auto& [id, record] : snapshot.workers) {
    if (record.num_running > 0 || record.in_flight.has_value()) return Status::Ok();
  }
  return InvalidArgument("workers: nothing runs and no sync is in flight");
}

}  // namespace

Status CheckSnapshot(const CoordinatorSnapshot& snapshot, const SnapshotRules& rules) {
  PACE_RETURN_IF_ERROR(CheckShape(snapshot, rules));
  PACE_RETURN_IF_ERROR(CheckWorkers(snapshot));
  PACE_RETURN_IF_ERROR(CheckRunning(snapshot, rules));
  PACE_RETURN_IF_ERROR(CheckPoolAndBatch(snapshot, rules));
  PACE_RETURN_IF_ERROR(CheckCredits(snapshot, rules));
  return CheckProgress(snapshot, rules);
}

}  // namespace pace
