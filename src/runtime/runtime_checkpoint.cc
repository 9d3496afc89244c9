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
  step_clock_.Set(StepPart::kWaitData, clock_.Now());
  return Handle(CheckpointFinished{step});
}

Status RuntimeDriver::Save() {
  RunCheckpoint run;
  for (const auto& worker : workers_) {
    for (GroupRequest& request : worker->Pause()) {
      run.in_flight.push_back(InFlightOf(std::move(request)));
    }
  }
  // What finished before the pause comes in first.
  for (Message& message : mailbox_.Take(std::chrono::steady_clock::now())) {
    PACE_RETURN_IF_ERROR(std::visit([this](auto& typed) { return On(typed); }, message));
  }
  if (!options_.checkpoints.empty()) {
    run.step = *checkpoint_;
    run.served = served_version_;
    run.time = clock_.Now();
    run.step_clock = step_clock_.state();
    run.totals = run_->journal().totals();
    run.step_totals = run_->journal().step_totals();
    run.coordinator = run_->coordinator().Save();
    for (const auto& [id, group] : run_->store().groups()) run.groups.push_back(group);
    if (options_.writer != nullptr) {
      Result<std::map<std::string, int64_t>> sizes = options_.writer->Flush();
      if (!sizes.ok()) return sizes.status();
      run.record_sizes = std::move(sizes).value();
    }
    // Written while the run goes on; a kill before its end leaves the one before.
    ++num_saves_;
    saving_thread_->Post(
        [this, run = std::move(run), learner = learner_->Copy(), served = served_weights_] {
          const bool older = run.served != run.step;
          mailbox_.Put(Saved{SaveCheckpoint(options_.checkpoints, run, policy_, learner,
                                            older ? &served : nullptr, settings_.checkpoint.keep)});
        });
  }
  for (const auto& worker : workers_) worker->Resume();
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

Status RuntimeDriver::Resume() {
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
  clock_.SetBase(run.time);
  step_clock_.Restore(run.step_clock);
  step_clock_.Set(StepPart::kOther, clock_.Now());
  newest_weights_ = served_weights_ = learner_->Snapshot();
  served_version_ = run.served;
  resumed_version_ = run.served;
  if (run.served != run.step) {
    Result<WeightSet> served = LoadServedWeights(policy_.config, loaded->folder);
    if (!served.ok()) return served.status();
    served_weights_ = std::move(served).value();
  }
  PACE_RETURN_IF_ERROR(MakeWorkers());
  for (const auto& worker : workers_) {
    PACE_RETURN_IF_ERROR(worker->engine().Sync(served_version_, served_weights_));
  }
  for (const GroupInFlight& group : run.in_flight) {
    Result<ResumedGroup> resumed = ResumeGroup(group, run_->store(), run_->curriculum());
    if (!resumed.ok()) return resumed.status().At(loaded->folder);
    const auto worker = static_cast<size_t>(resumed->worker.value());
    if (worker >= workers_.size()) {
      return InvalidArgument("engine.count = ", settings_.engine.count, ": the checkpoint has ",
                             worker + 1, " (resume with as many)");
    }
    workers_[worker]->engine().Submit(std::move(resumed->request));
  }
  for (const Command& command : run_->coordinator().Owed()) {
    if (const auto* evaluate = std::get_if<Evaluate>(&command)) {
      PACE_RETURN_IF_ERROR(Execute(*evaluate));
    }
  }
  if (run.coordinator.stop_requested) PACE_RETURN_IF_ERROR(Handle(RunResumed{}));
  return Handle(CheckpointFinished{run.step});
}

}  // namespace pace
