// What may be asked of a Coordinator without changing it: whether an event
// fits, whether the invariants hold, and what it waits for.
#include <algorithm>
#include <cmath>

#include "coordinator/coordinator.h"
#include "core/check.h"

namespace pace {

Status Coordinator::Validate(const Event& event) const {
  if (const auto* joined = std::get_if<WorkerJoined>(&event)) {
    if (workers_.Find(joined->worker) != nullptr) {
      return InvalidArgument("worker = ", joined->worker, ": has joined already");
    }
    if (joined->max_groups < 1) {
      return InvalidArgument("max_groups = ", joined->max_groups, ": must be >= 1");
    }
  } else if (const auto* lost = std::get_if<WorkerLost>(&event)) {
    if (workers_.Find(lost->worker) == nullptr) {
      return InvalidArgument("worker = ", lost->worker, ": is not live");
    }
  } else if (const auto* response = std::get_if<ResponseFinished>(&event)) {
    return ValidateResponse(*response);
  } else if (const auto* failed = std::get_if<GroupFailed>(&event)) {
    if (failed->group.value() < 0 || failed->group >= groups_.next_id()) {
      return InvalidArgument("group = ", failed->group, ": was never started");
    }
  } else if (const auto* synced = std::get_if<WorkerSynced>(&event)) {
    const WorkerRecord* record = workers_.Find(synced->worker);
    if (record == nullptr) return InvalidArgument("worker = ", synced->worker, ": is not live");
    if (record->in_flight != synced->version) {
      return InvalidArgument("version = ", synced->version, ": worker ", synced->worker,
                             " has no sync to it in flight");
    }
  } else if (const auto* step = std::get_if<StepFinished>(&event)) {
    if (!training_ || step->step != version_) {
      return InvalidArgument("step = ", step->step, ": is not in training");
    }
  } else if (const auto* evaluation = std::get_if<EvaluationFinished>(&event)) {
    if (std::find(evaluating_.begin(), evaluating_.end(), evaluation->version) ==
        evaluating_.end()) {
      return InvalidArgument("version = ", evaluation->version, ": is not being evaluated");
    }
  } else if (const auto* checkpoint = std::get_if<CheckpointFinished>(&event)) {
    if (!checkpointing_ || checkpoint->step != version_) {
      return InvalidArgument("step = ", checkpoint->step, ": no such checkpoint is in flight");
    }
  }
  return Status::Ok();
}

Status Coordinator::ValidateResponse(const ResponseFinished& event) const {
  if (event.group.value() < 0 || event.group >= groups_.next_id()) {
    return InvalidArgument("group = ", event.group, ": was never started");
  }
  if (event.member < 0 || event.member >= options_.group_size) {
    return InvalidArgument("member = ", event.member, ": must be in [0, ", options_.group_size,
                           ")");
  }
  if (event.segments.empty()) return InvalidArgument("segments: must hold at least one token");
  PolicyVersion last(0);
  for (const Segment& segment : event.segments) {
    if (segment.num_tokens < 1) {
      return InvalidArgument("segments: ", segment.num_tokens, " tokens: must be >= 1");
    }
    if (segment.version < last || segment.version > version_) {
      return InvalidArgument("segments: version ", segment.version, ": must not fall, nor pass ",
                             version_, ", the trainer's");
    }
    last = segment.version;
  }
  if (event.prefix_score.has_value() &&
      !(std::isfinite(*event.prefix_score) && *event.prefix_score >= 0)) {
    return InvalidArgument("prefix_score = ", *event.prefix_score, ": must be finite and >= 0");
  }
  if (event.num_bytes < 0) {
    return InvalidArgument("num_bytes = ", event.num_bytes, ": must be >= 0");
  }
  const GroupRecord* record = groups_.Find(event.group);
  if (record != nullptr && record->state == GroupState::kRunning &&
      record->IsFinished(event.member)) {
    return InvalidArgument("member = ", event.member, ": of group ", event.group,
                           " has finished already");
  }
  return Status::Ok();
}

void Coordinator::CheckInvariants() const {
  groups_.CheckInvariants();
  workers_.CheckInvariants();
  pool_.CheckInvariants();
  const SupplyView view = supply_view();

  // Each group is in exactly one place, and nothing is lost or counted twice.
  PACE_CHECK(pool_.occupancy() == view.num_pooled, "pool holds ", pool_.occupancy(), ", table ",
             view.num_pooled);
  PACE_CHECK(static_cast<int64_t>(selected_.size()) == view.num_selected, "selected groups");
  PACE_CHECK(view.num_started == view.num_running + view.num_pooled + view.num_selected +
                                     view.num_trained + view.num_rejected + view.num_lost,
             "started ", view.num_started, " groups, accounted for ",
             view.num_running + view.num_pooled + view.num_selected + view.num_trained +
                 view.num_rejected + view.num_lost);
  PACE_CHECK(view.num_trained == version_.step() * options_.batch, "trained ", view.num_trained,
             " groups by version ", version_);

  // Credits.
  int64_t num_awaiting = 0;
  for (const AwaitingSync& awaiting : awaiting_sync_) num_awaiting += awaiting.num_groups;
  PACE_CHECK(num_awaiting == num_awaiting_sync_, "awaiting sync");
  if (const auto bound = supply_->MaxOutstanding()) {
    PACE_CHECK(view.num_outstanding() <= *bound, view.num_outstanding(), " credits of ", *bound);
  }

  // Versions.
  PACE_CHECK(published_ <= version_, "published ", published_, " above ", version_);
  for (const auto& [worker, record] : workers_.workers()) {
    PACE_CHECK(!record.promised().has_value() || *record.promised() <= published_, "worker ",
               worker, " was promised a version not yet published");
  }

  // The step.
  PACE_CHECK(!(gathering_ && training_), "a step gathers and trains at once");
  PACE_CHECK(gathering_ || training_ || selected_.empty(), "groups selected outside a step");
  PACE_CHECK(!training_ || view.num_selected == options_.batch, "training on ", view.num_selected,
             " groups");
  PACE_CHECK(!gathering_ || view.num_selected < options_.batch, "a full batch waits");

  // Liveness: with a live worker and no stop, something is always outstanding.
  if (workers_.num_live() > 0 && !stop_requested_ && !LastStepDone() && !stopped_) {
    PACE_CHECK(!NothingOutstanding(), "nothing is outstanding: ", WhyWaiting());
    PACE_CHECK(checkpointing_ || training_ || pool_.empty(), "the trainer idles beside a pool");
  }
}

std::string Coordinator::WhyWaiting() const {
  if (stopped_) return "stopped";
  const SupplyView view = supply_view();
  if (checkpointing_) return Concat("the checkpoint of step ", version_, " is being written");
  if (training_) return Concat("step ", version_, " is training on ", view.num_selected, " groups");
  if (stop_requested_ || LastStepDone()) {
    return Concat(evaluating_.size(), " evaluations are to finish before the run stops");
  }
  std::string why =
      Concat("step ", version_, " has ", view.num_selected, " of ", options_.batch, " groups; ",
             view.num_running, " groups run on ", workers_.num_live(), " workers");
  if (workers_.num_live() == 0) {
    why += " (no worker is live: start one)";
  } else if (workers_.num_syncing() > 0) {
    why += Concat(", ", workers_.num_syncing(), " of them syncing weights");
  }
  if (view.num_awaiting_sync > 0) {
    why += Concat("; ", view.num_awaiting_sync, " credits wait for a sync");
  }
  if (guard_.num_rejected() > 0) why += Concat("; ", guard_.num_rejected(), " groups rejected");
  return why;
}

}  // namespace pace
