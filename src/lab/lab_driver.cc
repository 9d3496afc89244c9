#include "lab/lab_driver.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/check.h"
#include "execution/engine_maker.h"

namespace pace {

LabDriver::LabDriver(const Settings& settings, const Policy& policy, const LabOptions& options,
                     CostModel costs)
    : settings_(settings),
      policy_(policy),
      options_(options),
      costs_(std::move(costs)),
      colocated_(settings.cluster.layout == Layout::kColocated),
      engine_settings_(settings),
      queue_(settings.cluster.NumEngines() + 2),
      tool_pool_(settings.workload.tool_concurrency) {
  engine_settings_.engine.slots = settings.cluster.slots;
  // A pass holds every response that decodes, and prefill beside them.
  engine_settings_.engine.pass_tokens =
      std::max(settings.engine.pass_tokens, settings.cluster.slots * 4 / 3 + kBlockTokens);
  if (settings.cluster.kv_at_sync == KvAtSync::kKeep) {
    engine_settings_.engine.sync = SyncRule::kKeep;
  }
}

LabDriver::~LabDriver() {
  if (training_.valid()) training_.wait();
}

Result<std::unique_ptr<EngineCore>> LabDriver::MakeCore() const {
  return MakeEngine(engine_settings_, policy_, {.max_context = costs_.KvCapacity()});
}

int64_t LabDriver::MaxGroups() const {
  const int64_t size = settings_.NumMembers();
  return std::max<int64_t>(1, (settings_.cluster.slots + size - 1) / size);
}

std::unique_ptr<LabEngine> LabDriver::MakeLabEngine(std::unique_ptr<EngineCore> core) const {
  // Scores that nobody but an observer reads cost time only where that is asked for.
  const bool only_observes = settings_.admission.policy == AdmissionKind::kAcceptAll;
  return std::make_unique<LabEngine>(
      costs_,
      LabEngineOptions{.max_batch = settings_.cluster.slots,
                       .charge_rescoring = !only_observes || settings_.cluster.charge_observers},
      std::move(core));
}

Result<LabResult> LabDriver::Run() {
  PACE_ASSIGN_OR_RETURN(parts_, RunParts::Create(settings_, policy_, clock_, options_.writer,
                                                 !options_.checkpoints.empty()));
  parts_.run->journal().Watch(options_.observer);
  parts_.NoteTools(options_.observer);
  PACE_RETURN_IF_ERROR(options_.resume ? Resume() : Begin());
  while (!stopped_) {
    PACE_RETURN_IF_ERROR(Act());
    PACE_RETURN_IF_ERROR(parts_.run->journal().status());
  }
  result_.time = clock_.Now();
  result_.steps_done = parts_.run->coordinator().version().step();
  result_.stopped_early = result_.steps_done < settings_.run.num_steps;
  result_.weights = parts_.learner->HostSnapshot();
  return std::move(result_);
}

Status LabDriver::Begin() {
  for (int64_t i = 0; i < settings_.cluster.NumEngines(); ++i) {
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> core, MakeCore());
    engines_.push_back(MakeLabEngine(std::move(core)));
  }
  PACE_RETURN_IF_ERROR(
      ServeWeights(PolicyVersion(0), parts_.learner->Snapshot(), engines_[0]->core().decoder()));
  // The first weights reach every engine before the first group starts.
  finishing_step_ = true;
  for (int64_t i = 0; i < settings_.cluster.NumEngines(); ++i) {
    PACE_RETURN_IF_ERROR(Handle(WorkerJoined{WorkerId(i), MaxGroups()}));
  }
  finishing_step_ = false;
  return Status::Ok();
}

Status LabDriver::Act() {
  for (size_t i = 0; i < engines_.size(); ++i) Touch(i);
  std::optional<Seconds> timer = trained_at_.has_value() ? trained_at_ : sent_at_;
  if (checkpointed_at_.has_value()) timer = checkpointed_at_;
  if (!evaluated_.empty()) timer = clock_.Now();
  if (timer.has_value()) {
    queue_.Set(TimerSource(), *timer);
  } else {
    queue_.Remove(TimerSource());
  }
  if (calls_.empty()) {
    queue_.Remove(ToolSource());
  } else {
    queue_.Set(ToolSource(), calls_.front().call.due);
  }
  if (queue_.empty()) {
    return Unavailable("the run stands still: ", parts_.run->coordinator().WhyWaiting());
  }
  const int64_t source = queue_.source();
  clock_.AdvanceTo(queue_.time());
  step_clock_.Set(CurrentPart(), clock_.Now());
  if (source == ToolSource()) {
    PACE_RETURN_IF_ERROR(FinishCall());
  } else if (source != TimerSource()) {
    PACE_RETURN_IF_ERROR(ActEngine(static_cast<size_t>(source)));
  } else if (!evaluated_.empty()) {
    const PolicyVersion version = evaluated_.front();
    evaluated_.erase(evaluated_.begin());
    PACE_RETURN_IF_ERROR(Handle(EvaluationFinished{version}));
  } else if (checkpointed_at_.has_value()) {
    PACE_RETURN_IF_ERROR(FinishCheckpoint());
  } else if (trained_at_.has_value()) {
    PACE_RETURN_IF_ERROR(FinishStep());
  } else {
    sent_at_.reset();
  }
  StartTrainingIfReady();
  PACE_RETURN_IF_ERROR(SaveIfAtRest());
  step_clock_.Set(CurrentPart(), clock_.Now());
  return Status::Ok();
}

Status LabDriver::ActEngine(size_t index) {
  LabEngine& engine = *engines_[index];
  const Seconds rescored = engine.rescore_time(), busy = engine.busy_time();
  PACE_ASSIGN_OR_RETURN(LabReport report, engine.Act());
  rescoring_ += engine.rescore_time() - rescored;
  busy_ += engine.busy_time() - busy;
  for (FinishedResponse& response : report.finished) {
    const std::optional<Event> event = parts_.run->Finish(std::move(response));
    if (event.has_value()) PACE_RETURN_IF_ERROR(Handle(*event));
  }
  for (const MemberId id : report.paused) PACE_RETURN_IF_ERROR(OnRested(id));
  if (report.synced.has_value()) {
    PACE_RETURN_IF_ERROR(
        Handle(WorkerSynced{WorkerId(static_cast<int64_t>(index)), *report.synced}));
  }
  return Status::Ok();
}

Status LabDriver::FinishStep() {
  trained_at_.reset();
  PACE_ASSIGN_OR_RETURN(const MetricList metrics, training_.get());
  const TrainBatch batch = std::move(*batch_);
  batch_.reset();
  const PolicyVersion version = batch.step.Next();
  if (version.step() % settings_.supply.sync_interval == 0) {
    PACE_RETURN_IF_ERROR(
        ServeWeights(version, parts_.learner->Snapshot(), engines_[0]->core().decoder()));
  }
  const auto num_engines = static_cast<double>(engines_.size());
  StepTimes times = step_clock_.EndStep(clock_.Now(), rescoring_ / num_engines);
  times.engines_busy = busy_ / num_engines;
  rescoring_ = busy_ = Seconds(0);
  parts_.run->EndStep(batch, times, metrics);
  result_.rows.push_back(parts_.run->journal().last_row());
  if (colocated_) {
    for (auto& engine : engines_) engine->Resume(clock_.Now());
  }
  if (options_.observer != nullptr) {
    options_.observer->OnStep(version.step(), parts_.run->journal().last_row());
  }
  if (!stop_asked_ && options_.stop && options_.stop()) {
    stop_asked_ = true;
    // A checkpoint that is due is taken first, as in a run that nobody stops, so that the
    // stop leaves no trace. Otherwise the stop comes before the next step can begin.
    const int64_t every = settings_.run.checkpoint_every;
    stop_after_save_ = every > 0 && version.step() % every == 0;
    if (!stop_after_save_) PACE_RETURN_IF_ERROR(Handle(StopRequested{}));
  }
  finishing_step_ = true;
  const Status status = Handle(StepFinished{batch.step});
  finishing_step_ = false;
  return status;
}

Status LabDriver::Handle(const Event& event) {
  for (const Command& command : parts_.run->Handle(event)) {
    PACE_RETURN_IF_ERROR(std::visit([this](const auto& typed) { return Execute(typed); }, command));
  }
  return Status::Ok();
}

Status LabDriver::Execute(const StartGroup& command) {
  PACE_ASSIGN_OR_RETURN(GroupRequest request, parts_.run->Start(command));
  engines_[static_cast<size_t>(command.worker.value())]->Submit(clock_.Now(), std::move(request));
  return Status::Ok();
}

Status LabDriver::Execute(const AbandonGroup& command) {
  PACE_RETURN_IF_ERROR(TrainingRun::CheckAbandon(command));
  const GroupTrajectories& group = parts_.run->store().At(command.group);
  LabEngine& engine = *engines_[static_cast<size_t>(group.worker.value())];
  int64_t unfinished = 0;
  for (size_t member = 0; member < group.members.size(); ++member) {
    const PartialResponse* const response =
        engine.core().Peek({command.group, static_cast<int64_t>(member)});
    if (response != nullptr) unfinished += response->num_policy_tokens();
  }
  engine.Cancel(clock_.Now(), command.group);
  parts_.run->Abandon(command.group, unfinished);
  return Status::Ok();
}

Status LabDriver::Execute(const SyncWeights& command) {
  PACE_CHECK(command.version == served_version_, "version ", command.version.step(), " wanted, ",
             served_version_.step(), " there");
  engines_[static_cast<size_t>(command.worker.value())]->Sync(clock_.Now(), command.version,
                                                              served_);
  if (finishing_step_) sent_at_ = clock_.Now() + Seconds(costs_.SyncSeconds());
  return Status::Ok();
}

Status LabDriver::Execute(const TrainBatch& command) {
  batch_ = command;
  if (colocated_) {
    for (auto& engine : engines_) engine->Pause();
  }
  return Status::Ok();
}

Status LabDriver::Execute(const DropGroup& command) {
  parts_.run->Drop(command);
  return Status::Ok();
}

// Evaluation runs elsewhere and costs the run nothing.
Status LabDriver::Execute(const Evaluate& command) {
  PACE_ASSIGN_OR_RETURN(std::vector<BenchmarkScore> scores,
                        parts_.evaluator->Run(parts_.learner->Snapshot()));
  parts_.run->journal().AddEvaluation(command.version, scores);
  if (options_.observer != nullptr) options_.observer->OnEvaluation(command.version, scores);
  result_.evaluations.emplace_back(command.version, std::move(scores));
  evaluated_.push_back(command.version);
  return Status::Ok();
}

Status LabDriver::Execute(const Checkpoint& command) {
  checkpoint_ = command.step;
  for (auto& engine : engines_) engine->Pause();
  return Status::Ok();
}

Status LabDriver::Execute(const Stop& /*command*/) {
  stopped_ = true;
  return Status::Ok();
}

void LabDriver::StartTrainingIfReady() {
  if (!batch_.has_value() || trained_at_.has_value() || checkpoint_.has_value()) return;
  if (sent_at_.has_value()) return;
  if (colocated_ && !AllAtRest()) return;
  std::vector<TrainSequence> sequences = parts_.run->BatchOf(*batch_);
  PassSize pass;
  for (const TrainSequence& sequence : sequences) {
    pass += PassSize::Extending(0, static_cast<double>(sequence.tokens.size()));
  }
  trained_at_ = clock_.Now() + Seconds(costs_.TrainSeconds(pass, settings_.batch.num_updates));
  const auto policy = options_.num_threads > 1 ? std::launch::async : std::launch::deferred;
  training_ = std::async(policy, [this, step = batch_->step, data = std::move(sequences)] {
    return parts_.learner->Train(step, data);
  });
}

// Any engine's layout serves all of them.
Status LabDriver::ServeWeights(PolicyVersion version, const WeightSet& weights,
                               const Decoder& decoder) {
  PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> prepared, decoder.Prepare(weights));
  served_version_ = version;
  served_weights_ = weights;
  served_ = std::move(prepared);
  return Status::Ok();
}

bool LabDriver::AllAtRest() const {
  return std::all_of(engines_.begin(), engines_.end(),
                     [](const auto& engine) { return engine->at_rest(); });
}

StepPart LabDriver::CurrentPart() const {
  if (trained_at_.has_value()) return StepPart::kTrain;
  if (sent_at_.has_value()) return StepPart::kSync;
  if (checkpoint_.has_value() || batch_.has_value()) return StepPart::kOther;
  return StepPart::kWaitData;
}

void LabDriver::Touch(size_t index) {
  const std::optional<Seconds> time = engines_[index]->next_time();
  if (time.has_value()) {
    queue_.Set(static_cast<int64_t>(index), *time);
  } else {
    queue_.Remove(static_cast<int64_t>(index));
  }
}

}  // namespace pace
