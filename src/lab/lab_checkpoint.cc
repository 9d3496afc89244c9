// How a lab run is saved and goes on.
#include <utility>

#include "execution/checkpoint.h"
#include "lab/lab_driver.h"

namespace pace {

Status LabDriver::SaveIfAtRest() {
  if (!checkpoint_.has_value() || checkpointed_at_.has_value()) return Status::Ok();
  if (!evaluated_.empty() || sent_at_.has_value() || !AllAtRest()) return Status::Ok();
  step_clock_.Set(CurrentPart(), clock_.Now());
  PACE_ASSIGN_OR_RETURN(RunCheckpoint described,
                        parts_.Describe(*checkpoint_, served_version_,
                                        options_.checkpoints.empty() ? nullptr : options_.writer));
  RunCheckpoint run = std::move(described);
  run.time = clock_.Now();
  run.step_clock = step_clock_.state();
  run.rescoring = rescoring_;
  run.busy = busy_;
  for (const auto& engine : engines_) {
    for (GroupRequest& request : engine->core().Unfinished()) {
      run.in_flight.push_back(InFlightOf(std::move(request)));
    }
  }
  ForgetAbandonedCalls();
  for (const PendingCall& pending : calls_) run.calls.push_back(pending.call);
  if (!options_.checkpoints.empty()) {
    const bool older = run.served != run.step;
    // The one before is what a run goes on from that was stopped: it stays.
    const int64_t keep = run.coordinator.stop_requested ? 0 : settings_.checkpoint.keep;
    PACE_ASSIGN_OR_RETURN(const std::string folder,
                          SaveCheckpoint(options_.checkpoints, run, policy_, parts_.learner->Copy(),
                                         older ? &served_weights_ : nullptr, keep));
    if (options_.observer != nullptr) options_.observer->OnCheckpoint(folder);
  }
  if (stop_after_save_) {
    stopped_ = true;
    return Status::Ok();
  }
  PACE_RETURN_IF_ERROR(RebuildEngines(std::move(run.in_flight)));
  checkpointed_at_ = clock_.Now() + Seconds(settings_.cluster.checkpoint_s);
  return Status::Ok();
}

Status LabDriver::FinishCheckpoint() {
  const PolicyVersion step = *checkpoint_;
  checkpoint_.reset();
  checkpointed_at_.reset();
  for (auto& engine : engines_) engine->Resume(clock_.Now());
  finishing_step_ = true;
  const Status status = Handle(CheckpointFinished{step});
  finishing_step_ = false;
  return status;
}

Status LabDriver::RebuildEngines(std::vector<GroupInFlight> in_flight) {
  engines_.clear();
  for (int64_t i = 0; i < settings_.cluster.NumEngines(); ++i) {
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> core, MakeCore());
    if (i == 0 && served_ == nullptr) {
      PACE_RETURN_IF_ERROR(ServeWeights(served_version_, served_weights_, core->decoder()));
    }
    PACE_RETURN_IF_ERROR(core->Sync(served_version_, served_));
    engines_.push_back(MakeLabEngine(std::move(core)));
    engines_.back()->Pause();
  }
  for (GroupInFlight& group : in_flight) {
    const GroupId id = group.group;
    PACE_ASSIGN_OR_RETURN(
        ResumedGroup resumed,
        ResumeGroup(std::move(group), parts_.run->store(), parts_.run->prompt_source(),
                    parts_.run->coordinator().AttemptOf(id)));
    const auto worker = static_cast<size_t>(resumed.worker.value());
    if (worker >= engines_.size()) {
      return DataLoss("group ", id, " ran on engine ", worker, " of ", engines_.size());
    }
    PACE_RETURN_IF_ERROR(engines_[worker]->core().Submit(std::move(resumed.request)));
  }
  return Status::Ok();
}

Status LabDriver::Resume() {
  PACE_ASSIGN_OR_RETURN(ResumedRun resumed, parts_.Restore(options_.checkpoints, options_.loaded,
                                                           policy_, options_.observer));
  RunCheckpoint& run = resumed.checkpoint;
  PACE_RETURN_IF_ERROR(CheckWorkers(run, settings_.cluster.NumEngines()).At(resumed.folder));
  clock_.AdvanceTo(run.time);
  step_clock_.Restore(run.step_clock);
  rescoring_ = run.rescoring;
  busy_ = run.busy;
  served_version_ = run.served;
  served_weights_ = resumed.served;
  PACE_RETURN_IF_ERROR(RebuildEngines(std::move(run.in_flight)).At(resumed.folder));
  PACE_RETURN_IF_ERROR(RestoreCalls(run).At(resumed.folder));
  checkpoint_ = run.step;
  checkpointed_at_ = clock_.Now() + Seconds(settings_.cluster.checkpoint_s);
  return run.coordinator.stop_requested ? Handle(RunResumed{}) : Status::Ok();
}

}  // namespace pace
