// How a run on this machine is saved and goes on.
#include <utility>

#include "execution/checkpoint.h"
#include "runtime/runtime_driver.h"

namespace pace {

Status RuntimeDriver::SaveIfReady() {
  if (!checkpoint_.has_value() || batch_.has_value()) return Status::Ok();
  for (const std::optional<PolicyVersion>& sync : awaited_syncs_) {
    if (sync.has_value()) return Status::Ok();
  }
  PACE_RETURN_IF_ERROR(Save());
  const PolicyVersion step = *checkpoint_;
  checkpoint_.reset();
  if (stop_after_save_) {
    stopped_ = true;
    return Status::Ok();
  }
  step_clock_.Set(StepPart::kWaitData, clock_.Now());
  return Handle(CheckpointFinished{step});
}

Status RuntimeDriver::Save() {
  std::vector<GroupInFlight> in_flight;
  for (size_t worker = 0; worker < engines_.size(); ++worker) {
    for (GroupRequest& request : engines_[worker]->Pause()) {
      in_flight.push_back(InFlightOf(std::move(request)));
    }
    // What finished before the pause comes in first.
    PACE_RETURN_IF_ERROR(HearEngine(worker));
  }
  if (!options_.checkpoints.empty()) {
    Result<RunCheckpoint> run = parts_.Describe(*checkpoint_, served_version_, options_.writer);
    if (!run.ok()) return run.status();
    run->time = clock_.Now();
    run->step_clock = step_clock_.state();
    run->in_flight = std::move(in_flight);
    // Written while the run goes on; a kill before its end leaves the one before.
    ++num_saves_;
    saving_thread_->Post([this, run = std::move(run).value(), learner = parts_.learner->Copy(),
                          served = served_weights_] {
      const bool older = run.served != run.step;
      mailbox_.Put(Saved{SaveCheckpoint(options_.checkpoints, run, policy_, learner,
                                        older ? &served : nullptr, settings_.checkpoint.keep)});
    });
  }
  for (const auto& engine : engines_) engine->Resume();
  return Status::Ok();
}

Status RuntimeDriver::On(Saved& message) {
  --num_saves_;
  if (!message.folder.ok()) return message.folder.status();
  if (options_.observer != nullptr) options_.observer->OnCheckpoint(*message.folder);
  return Status::Ok();
}

Status RuntimeDriver::FinishSaves() {
  while (num_saves_ > 0) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (Message& message : mailbox_.Take(deadline)) {
      if (auto* saved = std::get_if<Saved>(&message)) PACE_RETURN_IF_ERROR(On(*saved));
    }
  }
  return Status::Ok();
}

Status RuntimeDriver::GoOnWith(GroupInFlight group) {
  const GroupId id = group.group;
  std::vector<std::pair<int64_t, PartialResponse>> resting;
  for (size_t i = 0; i < group.members.size(); ++i) {
    if (!group.responses[i].paused.has_value()) continue;
    resting.emplace_back(group.members[i], group.responses[i]);
  }
  PACE_ASSIGN_OR_RETURN(
      ResumedGroup going_on,
      ResumeGroup(std::move(group), parts_.run->store(), parts_.run->prompt_source(),
                  parts_.run->coordinator().AttemptOf(id)));
  const auto worker = static_cast<size_t>(going_on.worker.value());
  if (worker >= engines_.size()) {
    return DataLoss("group ", id, " ran on engine ", worker, " of ", engines_.size());
  }
  engines_[worker]->Submit(std::move(going_on.request));
  // A call that was under way is made again.
  for (auto& [member, response] : resting) OnRested(worker, {id, member}, std::move(response));
  return Status::Ok();
}

Status RuntimeDriver::Resume() {
  PACE_ASSIGN_OR_RETURN(ResumedRun resumed, parts_.Restore(options_.checkpoints, options_.loaded,
                                                           policy_, options_.observer));
  RunCheckpoint& run = resumed.checkpoint;
  PACE_RETURN_IF_ERROR(CheckWorkers(run, settings_.engine.count).At(resumed.folder));
  clock_.SetBase(run.time);
  step_clock_.Restore(run.step_clock);
  step_clock_.Set(StepPart::kOther, clock_.Now());
  newest_weights_ = parts_.learner->Snapshot();
  served_weights_ = resumed.served;
  served_version_ = run.served;
  PACE_RETURN_IF_ERROR(MakeEngines());
  for (const auto& engine : engines_) {
    PACE_RETURN_IF_ERROR(engine->Sync(served_version_, served_weights_));
  }
  for (GroupInFlight& group : run.in_flight) {
    PACE_RETURN_IF_ERROR(GoOnWith(std::move(group)).At(resumed.folder));
  }
  run.in_flight.clear();
  for (const Command& command : parts_.run->coordinator().Owed()) {
    if (const auto* evaluate = std::get_if<Evaluate>(&command)) {
      PACE_RETURN_IF_ERROR(Execute(*evaluate));
    }
  }
  if (run.coordinator.stop_requested) PACE_RETURN_IF_ERROR(Handle(RunResumed{}));
  return Handle(CheckpointFinished{run.step});
}

}  // namespace pace
