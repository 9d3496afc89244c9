// How a lab run is saved and goes on.
#include <utility>

#include "execution/checkpoint.h"
#include "lab/lab_driver.h"

namespace pace {
RunCheckpoint LabDriver::Describe() {
  RunCheckpoint run;
  run.step = *checkpoint_;
  run.served = served_version_;
  run.time = clock_.Now();
  run.step_clock = step_clock_.state();
  run.rescoring = rescoring_;
  run.totals = run_->journal().totals();
  run.step_totals = run_->journal().step_totals();
  run.coordinator = run_->coordinator().Save();
  for (const auto& [id, group] : run_->store().groups()) run.groups.push_back(group);
  for (const auto& engine : engines_) {
    for (GroupRequest& request : engine->core().Unfinished()) {
      run.in_flight.push_back(InFlightOf(std::move(request)));
    }
  }
  return run;
}

Status LabDriver::SaveIfAtRest() {
  if (!checkpoint_.has_value() || checkpointed_at_.has_value()) return Status::Ok();
  if (!evaluated_.empty() || !AllAtRest()) return Status::Ok();
  step_clock_.Set(CurrentPart(), clock_.Now());
  RunCheckpoint run = Describe();
  if (!options_.checkpoints.empty()) {
    if (options_.writer != nullptr) {
      Result<std::map<std::string, int64_t>> sizes = options_.writer->Flush();
      if (!sizes.ok()) return sizes.status();
      run.record_sizes = std::move(sizes).value();
    }
    const bool older = run.served != run.step;
    const Result<std::string> folder =
        SaveCheckpoint(options_.checkpoints, run, policy_, learner_->Copy(),
                       older ? &served_weights_ : nullptr, settings_.checkpoint.keep);
    if (!folder.ok()) return folder.status();
    if (options_.observer != nullptr) options_.observer->OnCheckpoint(*folder);
  }
  PACE_RETURN_IF_ERROR(RebuildEngines(run.in_flight));
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

Status LabDriver::RebuildEngines(const std::vector<GroupInFlight>& in_flight) {
  std::vector<std::unique_ptr<EngineCore>> cores;
  for (int64_t i = 0; i < settings_.cluster.NumEngines(); ++i) {
    Result<std::unique_ptr<EngineCore>> core = MakeCore();
    if (!core.ok()) return core.status();
    PACE_RETURN_IF_ERROR((*core)->Sync(served_version_, served_));
    cores.push_back(std::move(core).value());
  }
  for (const GroupInFlight& group : in_flight) {
    Result<ResumedGroup> resumed = ResumeGroup(group, run_->store(), run_->curriculum());
    if (!resumed.ok()) return resumed.status();
    const auto worker = static_cast<size_t>(resumed->worker.value());
    if (worker >= cores.size()) return DataLoss("worker ", worker, ": is not one of this run's");
    PACE_RETURN_IF_ERROR(cores[worker]->Submit(std::move(resumed->request)));
  }
  engines_.clear();
  for (auto& core : cores) {
    engines_.push_back(
        std::make_unique<LabEngine>(costs_, settings_.cluster.slots, std::move(core)));
    engines_.back()->Pause();
  }
  return Status::Ok();
}

Status LabDriver::Resume() {
  const auto note = [this](const std::string& text) {
    if (options_.observer != nullptr) options_.observer->OnNote(text);
  };
  Result<LoadedCheckpoint> loaded = LoadNewestCheckpoint(options_.checkpoints, note);
  if (!loaded.ok()) return loaded.status();
  RunCheckpoint& run = loaded->run;
  PACE_RETURN_IF_ERROR(learner_->Restore(loaded->folder));
  PACE_RETURN_IF_ERROR(run_->coordinator().Restore(run.coordinator).At(loaded->folder));
  for (GroupTrajectories& group : run.groups) run_->store().Begin(std::move(group));
  run_->journal().Restore(run.totals, run.step_totals, run_->coordinator().pool());
  clock_.AdvanceTo(run.time);
  step_clock_.Restore(run.step_clock);
  rescoring_ = run.rescoring;
  if (run.served == run.step) {
    PACE_RETURN_IF_ERROR(ServeWeights(run.served, learner_->Snapshot()));
  } else {
    const Result<WeightSet> served = LoadServedWeights(policy_.config, loaded->folder);
    if (!served.ok()) return served.status();
    PACE_RETURN_IF_ERROR(ServeWeights(run.served, *served));
  }
  PACE_RETURN_IF_ERROR(RebuildEngines(run.in_flight).At(loaded->folder));
  checkpoint_ = run.step;
  checkpointed_at_ = clock_.Now() + Seconds(settings_.cluster.checkpoint_s);
  return run.coordinator.stop_requested ? Handle(RunResumed{}) : Status::Ok();
}

}  // namespace pace
