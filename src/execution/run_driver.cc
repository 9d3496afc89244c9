#include "execution/run_driver.h"

#include <utility>
#include <variant>

#include "core/check.h"

namespace pace {
namespace {

// Rewards that fail in a row before the run ends: the function is wrong, not one response.
constexpr int64_t kMaxRewardFaults = 64;

size_t IndexOf(WorkerId worker) {
  return static_cast<size_t>(worker.value());
}

}  // namespace

RunDriver::RunDriver(const Settings& settings, const Policy& policy, const RunSetup& setup,
                     const Clock& clock, std::unique_ptr<TrainingRun> run)
    : settings_(settings), policy_(policy), setup_(setup), clock_(clock), run_(std::move(run)) {}

Status RunDriver::Handle(const Event& event) {
  for (const Command& command : run_->Handle(event)) {
    PACE_RETURN_IF_ERROR(Execute(command));
  }
  return run_->coordinator().failure();
}

Status RunDriver::Finish(FinishedResponse response) {
  if (run_->rewards() != nullptr && run_->EnvironmentRewardOf(response.id) == nullptr) {
    std::optional<RewardRequest> request = run_->RewardRequestFor(response);
    if (!request.has_value()) return Status::Ok();
    return AskReward(*std::move(request), std::move(response));
  }
  const std::optional<Event> event = run_->Finish(std::move(response));
  return event.has_value() ? Handle(*event) : Status::Ok();
}

Status RunDriver::AskReward(RewardRequest request, FinishedResponse response) {
  const RewardReply reply = run_->rewards()->Judge(request);
  return FinishJudged(std::move(response), request, reply);
}

Status RunDriver::FinishJudged(FinishedResponse response, const RewardRequest& request,
                               const RewardReply& reply) {
  if (run_->store().Find(response.id.group) == nullptr) return Status::Ok();
  if (reply.ok()) {
    num_faults_in_row_ = 0;
  } else {
    PACE_RETURN_IF_ERROR(OnFault(
        response.id.group,
        Concat("reward of problem ", request.id, ": ", Name(reply.fault), ": ", reply.message)));
    if (settings_.reward.on_error == RewardFailure::kFailGroup) return Status::Ok();
  }
  // A fault counts as a score of 0.
  const RewardReply zero;
  const std::optional<Event> event = run_->Finish(std::move(response), reply.ok() ? &reply : &zero);
  return event.has_value() ? Handle(*event) : Status::Ok();
}

Result<std::optional<std::vector<TokenId>>> RunDriver::TakeReply(MemberId id,
                                                                 const PartialResponse& response,
                                                                 const ToolReply& reply,
                                                                 Seconds took) {
  const EnvironmentStep* const step = reply.step.get();
  if (step == nullptr) return run_->Reply(id, response, reply, took);
  if (step->ok()) {
    num_faults_in_row_ = 0;
    return run_->Reply(id, response, reply, took);
  }
  const Problem problem = run_->prompt_source().ProblemAt(run_->store().At(id.group).prompt);
  PACE_RETURN_IF_ERROR(OnFault(id.group, Concat("environment of problem ", problem.id, ": ",
                                                Name(step->fault), ": ", step->fault_message)));
  // Its reward is 0, whatever it was before.
  if (run_->store().Find(id.group) != nullptr) run_->store().FailEnvironment(id);
  return std::optional<std::vector<TokenId>>();
}

Status RunDriver::OnFault(GroupId group, const std::string& text) {
  const bool stops = settings_.reward.on_error == RewardFailure::kStop;
  const bool always = ++num_faults_in_row_ >= kMaxRewardFaults;
  run_->journal().OnFailedReward(run_->coordinator().version(), text, stops || always);
  if (stops) return Unavailable(text);
  if (always) return Unavailable(text, " (", num_faults_in_row_, " failed in a row)");
  if (settings_.reward.on_error == RewardFailure::kZero) return Status::Ok();
  const size_t worker = IndexOf(run_->store().At(group).worker);
  run_->Abandon({group, /*keep_prefix=*/false}, Cancel(worker, group, /*keep=*/false));
  return Handle(GroupFailed{.group = group, .retry = false});
}

Status RunDriver::Execute(const Command& command) {
  if (const auto* start = std::get_if<StartGroup>(&command)) {
    const size_t worker = IndexOf(start->worker);
    PACE_ASSIGN_OR_RETURN(GroupRequest request, run_->Start(*start, sent_[start->worker]));
    Submit(worker, std::move(request));
  } else if (const auto* abandon = std::get_if<AbandonGroup>(&command)) {
    const size_t worker = IndexOf(run_->store().At(abandon->group).worker);
    run_->Abandon(*abandon, Cancel(worker, abandon->group, abandon->keep_prefix));
  } else if (const auto* sync = std::get_if<SyncWeights>(&command)) {
    PACE_CHECK(sync->version == published_.version, "version ", sync->version.step(), " wanted, ",
               published_.version.step(), " there");
    sent_[sync->worker] = sync->version;
    return Sync(IndexOf(sync->worker), published_);
  } else if (const auto* batch = std::get_if<TrainBatch>(&command)) {
    batch_ = *batch;
    StartTraining();
  } else if (const auto* drop = std::get_if<DropGroup>(&command)) {
    run_->Drop(*drop);
  } else if (const auto* evaluate = std::get_if<Evaluate>(&command)) {
    return StartEvaluation(evaluate->version);
  } else if (const auto* checkpoint = std::get_if<Checkpoint>(&command)) {
    checkpoint_ = checkpoint->step;
    StartCheckpoint();
  } else {
    static_assert(std::variant_size_v<Command> == 8);  // Stop is the last
    stopped_ = true;
  }
  return Status::Ok();
}

Result<TrainedStep> RunDriver::Train(PolicyVersion step,
                                     const std::vector<TrainSequence>& sequences) {
  TrainedStep trained;
  PACE_ASSIGN_OR_RETURN(trained.metrics, run_->trainer().Step(sequences));
  PACE_ASSIGN_OR_RETURN(trained.weights, run_->trainer().Snapshot());
  const PolicyVersion version = step.Next();
  if (version.step() % settings_.supply.sync_interval == 0) {
    PACE_ASSIGN_OR_RETURN(trained.published, Publish(version, trained.weights));
  }
  return trained;
}

Result<PublishedWeights> RunDriver::Publish(PolicyVersion version, const WeightSet& weights) {
  PublishedWeights published{.version = version, .weights = weights};
  PACE_RETURN_IF_ERROR(Prepare(published));
  return published;
}

void RunDriver::Serve(PublishedWeights published) {
  published_ = std::move(published);
  if (setup_.observer != nullptr) setup_.observer->OnPublished(published_.version);
}

Status RunDriver::ServeFirst() {
  PACE_ASSIGN_OR_RETURN(newest_, run_->trainer().Snapshot());
  PACE_ASSIGN_OR_RETURN(PublishedWeights first, Publish(PolicyVersion(0), newest_));
  Serve(std::move(first));
  return Status::Ok();
}

StepFinished RunDriver::EndStep(TrainedStep trained, const StepTimes& times, int64_t num_sampled) {
  const TrainBatch batch = *std::exchange(batch_, std::nullopt);
  newest_ = std::move(trained.weights);
  if (trained.published.has_value()) Serve(*std::move(trained.published));
  result_.rows.push_back(run_->EndStep(batch, times, trained.metrics));
  if (setup_.observer != nullptr) {
    setup_.observer->OnStep(batch.step.Next().step(), result_.rows.back());
  }
  StepFinished finished{batch.step};
  if (settings_.supply.ReadsTimes()) {
    finished.seconds = times.step.count();
    finished.waited = times.wait_data.count();
    finished.num_tokens = num_sampled;
  }
  return finished;
}

void RunDriver::EndEvaluation(PolicyVersion version, std::vector<BenchmarkScore> scores) {
  run_->journal().AddEvaluation(version, scores);
  if (setup_.observer != nullptr) setup_.observer->OnEvaluation(version, scores);
  result_.evaluations.emplace_back(version, std::move(scores));
}

Status RunDriver::StopIfAsked(bool checkpoint_is_due) {
  if (stop_asked_ || !setup_.stop || !setup_.stop()) return Status::Ok();
  stop_asked_ = true;
  stop_after_save_ = checkpoint_is_due;
  return checkpoint_is_due ? Status::Ok() : Handle(StopRequested{});
}

Result<RunCheckpoint> RunDriver::Describe() const {
  PACE_ASSIGN_OR_RETURN(RunCheckpoint run, run_->Describe(*checkpoint_, published_.version));
  run.time = clock_.Now();
  run.step_clock = step_clock_.state();
  return run;
}

Result<std::string> RunDriver::Write(const RunCheckpoint& run, const SavedTrainer& trainer,
                                     const WeightSet& served, int64_t keep) const {
  return SaveCheckpoint(setup_.checkpoints, run, policy_, trainer,
                        run.served != run.step ? &served : nullptr, keep);
}

Result<ResumedRun> RunDriver::Restore() {
  PACE_ASSIGN_OR_RETURN(ResumedRun resumed, run_->Restore());
  const RunCheckpoint& run = resumed.checkpoint;
  step_clock_.Restore(run.step_clock);
  PACE_ASSIGN_OR_RETURN(newest_, run_->trainer().Snapshot());
  for (const auto& [worker, record] : run.coordinator.workers) sent_[worker] = run.served;
  return resumed;
}

Result<ResumedGroup> RunDriver::ResumeInFlight(GroupInFlight group) {
  const GroupId id = group.group;
  PACE_ASSIGN_OR_RETURN(ResumedGroup resumed,
                        ResumeGroup(std::move(group), run_->store(), run_->prompt_source(),
                                    run_->coordinator().AttemptOf(id)));
  if (!sent_.contains(resumed.worker)) {
    return DataLoss("group ", id, " ran on engine ", resumed.worker, ", which is not there");
  }
  return resumed;
}

Status RunDriver::LoseWorker(WorkerId worker, std::vector<GroupInFlight> unfinished) {
  std::map<GroupId, GroupInFlight> kept;
  for (GroupInFlight& group : unfinished) kept.emplace(group.group, std::move(group));
  std::vector<GroupId> lost;
  for (const auto& [id, group] : run_->store().groups()) {
    if (group.worker == worker && !group.complete()) lost.push_back(id);
  }
  for (const GroupId id : lost) {
    const auto found = kept.find(id);
    const bool keeps = found != kept.end();
    run_->Abandon({id, /*keep_prefix=*/keeps},
                  keeps ? std::move(found->second) : GroupInFlight{.group = id});
  }
  sent_.erase(worker);
  return Handle(WorkerLost{worker});
}

void RunDriver::Note(const std::string& text) const {
  if (setup_.observer != nullptr) setup_.observer->OnNote(text);
}

RunResult RunDriver::TakeResult() {
  result_.time = clock_.Now();
  result_.steps_done = run_->coordinator().version().step();
  result_.stopped_early = result_.steps_done < settings_.run.num_steps;
  return std::move(result_);
}

}  // namespace pace
