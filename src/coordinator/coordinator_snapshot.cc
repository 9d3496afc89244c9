// Save, Restore and Owed of the Coordinator.
#include <algorithm>
#include <set>
#include <utility>

#include "coordinator/coordinator.h"
#include "core/check.h"

namespace pace {
namespace {

// No run is longer; products of versions and batches stay far from overflow.
constexpr int64_t kMaxVersion = 1000000000;

}  // namespace

CoordinatorSnapshot Coordinator::Save() const {
  CoordinatorSnapshot out;
  out.batch = options_.batch;
  out.group_size = options_.group_size;
  out.sync_interval = options_.sync_interval;
  out.version = version_;
  out.published = published_;
  out.started = started_;
  out.gathering = gathering_;
  out.training = training_;
  out.checkpointing = checkpointing_;
  out.stop_requested = stop_requested_;
  out.final_checkpoint_done = final_checkpoint_done_;
  out.stopped = stopped_;
  out.evaluating = evaluating_;
  out.num_offered = num_offered_;
  out.num_rejected_in_step = guard_.num_rejected();
  out.num_guarded = guard_.num_guarded();
  out.num_trained = num_trained_;
  out.num_rejected = num_rejected_;
  out.num_lost = num_lost_;
  out.workers.assign(workers_.workers().begin(), workers_.workers().end());
  out.next_group = groups_.next_id();
  groups_.ForEach(
      [&out](GroupId id, const GroupRecord& record) { out.groups.emplace_back(id, record); });
  out.selected = selected_;
  out.awaiting_sync = awaiting_sync_;
  out.pool = pool_.Save();
  out.next_prompt = prompts_.next();
  out.resumed_prompts = prompts_.resumed();
  out.returned_prompts = prompts_.returned();
  out.throughput = throughput_.steps();
  out.current_throughput = throughput_.current();
  out.admission = admission_->Save();
  return out;
}

Status Coordinator::ValidateSnapshot(const CoordinatorSnapshot& snapshot) const {
  const auto differs = [](const char* name, int64_t saved, int64_t ours) {
    return InvalidArgument(name, " = ", saved, ": this run has ", ours,
                           " (resume with the settings the snapshot was made with)");
  };
  if (snapshot.batch != options_.batch) return differs("batch", snapshot.batch, options_.batch);
  if (snapshot.group_size != options_.group_size) {
    return differs("group_size", snapshot.group_size, options_.group_size);
  }
  if (snapshot.sync_interval != options_.sync_interval) {
    return differs("sync_interval", snapshot.sync_interval, options_.sync_interval);
  }
  if (snapshot.version.step() > kMaxVersion) {
    return InvalidArgument("version = ", snapshot.version, ": must be <= ", kMaxVersion);
  }
  if ((snapshot.gathering || snapshot.training) &&
      snapshot.admission.plan.step != snapshot.version) {
    return InvalidArgument("admission.plan.step = ", snapshot.admission.plan.step,
                           ": must be the version = ", snapshot.version, " of the step under way");
  }
  if (snapshot.published > snapshot.version) {
    return InvalidArgument("published = ", snapshot.published,
                           ": must be <= version = ", snapshot.version);
  }
  std::set<WorkerId> workers;
  for (const auto& [id, record] : snapshot.workers) {
    const bool goes_back = record.served.has_value() && record.in_flight.has_value() &&
                           *record.in_flight <= *record.served;
    if (!workers.insert(id).second || record.max_groups < 1 || goes_back ||
        (record.promised().has_value() && *record.promised() > snapshot.published)) {
      return InvalidArgument("workers: worker ", id, ": listed twice, without room, or ahead of ",
                             "the published version");
    }
  }
  // Groups, and the places that must list them.
  std::map<WorkerId, int64_t> num_running;
  std::set<GroupId> pooled, selected;
  GroupId last(-1);
  for (const auto& [id, record] : snapshot.groups) {
    if (id <= last || id >= snapshot.next_group) {
      return InvalidArgument("groups: id ", id,
                             ": must grow and stay below next_group = ", snapshot.next_group);
    }
    last = id;
    if (record.dispatched > snapshot.published) {
      return InvalidArgument("groups: group ", id, ": dispatched after the published version");
    }
    if (record.state == GroupState::kPooled) pooled.insert(id);
    if (record.state == GroupState::kSelected) selected.insert(id);
    if (record.state != GroupState::kRunning) continue;
    ++num_running[record.worker];
    int64_t num_finished = 0;
    for (const MemberSummary& member : record.members) {
      num_finished += member.num_tokens > 0;
      if (member.completed > snapshot.version || member.oldest > member.completed) {
        return InvalidArgument("groups: group ", id, ": a member completed after version ",
                               snapshot.version);
      }
    }
    if (!workers.contains(record.worker) || num_finished != record.num_finished ||
        num_finished >= options_.group_size ||
        static_cast<int64_t>(record.members.size()) != options_.group_size) {
      return InvalidArgument("groups: group ", id, ": its members or its worker do not fit");
    }
  }
  for (const auto& [id, record] : snapshot.workers) {
    if (record.num_running != num_running[id] || record.num_running > record.max_groups) {
      return InvalidArgument("workers: worker ", id, ": num_running = ", record.num_running,
                             " does not match its groups");
    }
  }
  for (const PooledGroup& group : snapshot.pool) {
    const bool members_fit =
        group.members.empty() ? !admission_->NeedsMembers()
                              : static_cast<int64_t>(group.members.size()) == options_.group_size;
    if (pooled.erase(group.summary.id) != 1 || group.summary.assembled > snapshot.version ||
        group.summary.num_members != options_.group_size || !members_fit) {
      return InvalidArgument("pool: group ", group.summary.id, ": is not a pooled group of ",
                             options_.group_size, " members");
    }
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
  const auto num_selected = static_cast<int64_t>(snapshot.selected.size());
  const bool step_fits = snapshot.training    ? num_selected == options_.batch
                         : snapshot.gathering ? num_selected < options_.batch
                                              : num_selected == 0;
  if (!step_fits || (snapshot.training && snapshot.gathering)) {
    return InvalidArgument("selected: ", num_selected, " groups do not fit the step's state");
  }
  if (snapshot.num_trained != snapshot.version.step() * options_.batch) {
    return InvalidArgument("num_trained = ", snapshot.num_trained, ": must be version * batch = ",
                           snapshot.version.step() * options_.batch);
  }
  const int64_t accounted = static_cast<int64_t>(snapshot.groups.size()) + snapshot.num_trained +
                            snapshot.num_rejected + snapshot.num_lost;
  if (snapshot.next_group.value() != accounted) {
    return InvalidArgument("next_group = ", snapshot.next_group, ": ", accounted,
                           " groups are accounted for");
  }
  PolicyVersion reached = snapshot.published;
  for (const auto& [id, record] : snapshot.workers) {
    if (const auto serving = record.served.has_value() ? record.served : record.in_flight) {
      reached = std::min(reached, *serving);
    }
  }
  int64_t num_awaiting = 0;
  PolicyVersion needed = reached;
  for (const AwaitingSync& awaiting : snapshot.awaiting_sync) {
    if (awaiting.needed < needed || awaiting.num_groups != options_.batch) {
      return InvalidArgument("awaiting_sync: version ", awaiting.needed,
                             ": does not fit what workers serve");
    }
    needed = awaiting.needed;
    num_awaiting += awaiting.num_groups;
  }
  const int64_t outstanding = num_awaiting + static_cast<int64_t>(snapshot.groups.size());
  if (const auto bound = supply_->MaxOutstanding(); bound.has_value() && outstanding > *bound) {
    return InvalidArgument("groups: ", outstanding, " credits are out, the supply allows ", *bound);
  }
  return Status::Ok();
}

Status Coordinator::Restore(const CoordinatorSnapshot& snapshot) {
  PACE_CHECK(!started_, "restore into a coordinator that has handled events");
  PACE_RETURN_IF_ERROR(ValidateSnapshot(snapshot));
  PACE_RETURN_IF_ERROR(admission_->Restore(snapshot.admission).At("admission"));
  version_ = snapshot.version;
  published_ = snapshot.published;
  started_ = snapshot.started;
  gathering_ = snapshot.gathering;
  training_ = snapshot.training;
  checkpointing_ = snapshot.checkpointing;
  stop_requested_ = snapshot.stop_requested;
  final_checkpoint_done_ = snapshot.final_checkpoint_done;
  stopped_ = snapshot.stopped;
  evaluating_ = snapshot.evaluating;
  num_offered_ = snapshot.num_offered;
  guard_.Restore(snapshot.admission.plan.step, snapshot.num_rejected_in_step, snapshot.num_guarded);
  num_trained_ = snapshot.num_trained;
  num_rejected_ = snapshot.num_rejected;
  num_lost_ = snapshot.num_lost;
  for (const auto& [id, record] : snapshot.workers) workers_.Insert(id, record);
  for (const auto& [id, record] : snapshot.groups) groups_.Insert(id, record);
  groups_.ReserveIds(snapshot.next_group);
  selected_ = snapshot.selected;
  awaiting_sync_ = snapshot.awaiting_sync;
  num_awaiting_sync_ = 0;
  for (const AwaitingSync& awaiting : awaiting_sync_) num_awaiting_sync_ += awaiting.num_groups;
  std::vector<PooledGroup> pool;
  for (const PooledGroup& group : snapshot.pool) pool.push_back(group.Copy());
  pool_.Restore(std::move(pool));
  prompts_.Restore(snapshot.next_prompt, snapshot.resumed_prompts, snapshot.returned_prompts);
  throughput_.Restore(snapshot.throughput, snapshot.current_throughput);
  return Status::Ok();
}

std::vector<Command> Coordinator::Owed() const {
  std::vector<Command> owed;
  for (const auto& [worker, record] : workers_.workers()) {
    if (record.in_flight.has_value()) owed.push_back(SyncWeights{worker, *record.in_flight});
  }
  for (const GroupId id : groups_.Running()) {
    const GroupRecord& record = *groups_.Find(id);
    owed.push_back(StartGroup{id, record.worker, record.prompt});
  }
  if (training_) owed.push_back(TrainBatch{version_, selected_});
  for (const PolicyVersion version : evaluating_) owed.push_back(Evaluate{version});
  if (checkpointing_) owed.push_back(Checkpoint{version_});
  return owed;
}

}  // namespace pace
