// Save, Restore and Owed of the Coordinator.
#include <algorithm>
#include <utility>

#include "coordinator/coordinator.h"
#include "coordinator/snapshot_check.h"
#include "core/check.h"

namespace pace {
CoordinatorSnapshot Coordinator::Save() const {
  CoordinatorSnapshot out;
  out.batch = options_.batch;
  out.group_size = options_.group_size;
  out.sync_interval = options_.sync_interval;
  out.num_events = num_events_;
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

Status Coordinator::Restore(const CoordinatorSnapshot& snapshot) {
  PACE_CHECK(!started_, "restore into a coordinator that has handled events");
  PACE_RETURN_IF_ERROR(
      CheckSnapshot(snapshot, {options_, admission_->NeedsMembers(), supply_->MaxOutstanding()}));
  PACE_RETURN_IF_ERROR(admission_->Restore(snapshot.admission).At("admission"));
  num_events_ = snapshot.num_events;
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
  for (const auto& [id, saved] : snapshot.groups) {
    GroupRecord record = saved;
    record.finished_mask = 0;  // not saved: it follows from the members
    for (size_t m = 0; m < std::min<size_t>(record.members.size(), 64); ++m) {
      if (record.members[m].num_tokens > 0) record.finished_mask |= uint64_t{1} << m;
    }
    groups_.Insert(id, std::move(record));
  }
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
    owed.push_back(StartGroup{id, record.worker, record.prompt, record.attempt});
  }
  if (training_) owed.push_back(TrainBatch{version_, selected_});
  for (const PolicyVersion version : evaluating_) owed.push_back(Evaluate{version});
  if (checkpointing_) owed.push_back(Checkpoint{version_});
  return owed;
}

}  // namespace pace
