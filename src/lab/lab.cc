#include "lab/lab.h"

#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/cost_model.h"
#include "cluster/event_queue.h"
#include "cluster/tool_pool.h"
#include "config/settings.h"
#include "core/clock.h"
#include "execution/engine_maker.h"
#include "execution/learner_options.h"
#include "execution/run_driver.h"
#include "lab/lab_engine.h"
#include "rollout/turn_count.h"

namespace pace {
namespace {

// LabDriver: carries out the coordinator's commands under virtual time, for real.
//
// The loop of the simulator with real engines and a real trainer. Training is
// computed on a thread of its own where the setup allows; it counts when its virtual
// time is over, so threads cannot change anything.
//
// A checkpoint is a barrier: passes end, engines pause, everything is saved, and
// the run continues from what was saved, in new engines. So a run that was resumed
// and one that was never stopped are the same run.
//
// Thread-safety: none.
class LabDriver final : public RunDriver {
 public:
  // All references outlive the driver.
  LabDriver(const Settings& settings, const Policy& policy, const RunSetup& setup,
            const CostModel& costs, VirtualClock& clock, std::unique_ptr<TrainingRun> run);

  Result<RunResult> Run();

 private:
  using Training = std::future<Result<TrainedStep>>;
  // A tool's reply, and when the run receives it.
  struct PendingCall {
    CallInFlight call;
    ToolReply reply;
  };

  Status Begin();
  Status Resume();
  Status Act();
  Status ActEngine(size_t index);
  Status FinishStep();
  Status FinishCheckpoint();
  // Tools: the program runs at once and for real; its time is the workload's.
  Status OnRested(MemberId id);
  void AddCall(CallInFlight call, ToolReply reply);
  // The response reads the reply, or ends.
  Status UseReply(MemberId id, const ToolReply& reply, Seconds took);
  Status FinishCall();
  Status RestoreCalls(const RunCheckpoint& run);
  // A run that continues from a checkpoint does not know of them.
  void ForgetAbandonedCalls();

  void Submit(size_t worker, GroupRequest request) override;
  GroupInFlight Cancel(size_t worker, GroupId group, bool keep) override;
  Status Sync(size_t worker, const PublishedWeights& weights) override;
  void StartTraining() override;
  Status StartEvaluation(PolicyVersion version) override;
  void StartCheckpoint() override;
  Status Prepare(PublishedWeights& published) override;

  // An event whose syncs the trainer waits for.
  Status HandleAtStepEnd(const Event& event);
  // The sequences that the trainer computes a gradient of.
  std::vector<const TrainSequence*> Computed(std::span<const TrainSequence> sequences) const;
  void StartTrainingIfReady();
  Status SaveIfAtRest();
  Status MakeEngines();
  // In fresh engines, these responses.
  Status Continue(std::vector<GroupInFlight> in_flight);

  bool AllAtRest() const;
  int64_t MaxGroups() const;
  StepPart CurrentPart() const;
  void Touch(size_t index);
  int64_t TimerSource() const { return settings_.cluster.NumEngines(); }
  int64_t ToolSource() const { return TimerSource() + 1; }

  // Constant after construction.
  const CostModel& costs_;
  const bool colocated_;
  Settings engine_settings_;  // with the cluster's slots

  VirtualClock& virtual_clock_;  // clock_, to be advanced
  EventQueue queue_;
  std::vector<std::unique_ptr<LabEngine>> engines_;  // engine i is worker i
  ToolPool tool_pool_;
  std::vector<PendingCall> calls_;  // by due time, then by response

  bool finishing_step_ = false;  // the trainer waits for syncs that are sent now
  // Until when the trainer sends weights. Engines take them at a boundary of
  // their own, which it does not wait for.
  std::optional<Seconds> sent_at_;
  std::optional<Seconds> trained_at_;
  std::vector<PolicyVersion> evaluated_;  // the coordinator is to be told
  std::optional<Seconds> checkpointed_at_;
  // Of all engines, since the last step.
  Seconds rescoring_{0};
  Seconds busy_{0};
  int64_t num_sampled_ = 0;
  Training training_;  // the last member: it uses the others, and waits when destroyed
};

LabDriver::LabDriver(const Settings& settings, const Policy& policy, const RunSetup& setup,
                     const CostModel& costs, VirtualClock& clock, std::unique_ptr<TrainingRun> run)
    : RunDriver(settings, policy, setup, clock, std::move(run)),
      costs_(costs),
      colocated_(settings.cluster.layout == Layout::kColocated),
      engine_settings_(settings),
      virtual_clock_(clock),
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

int64_t LabDriver::MaxGroups() const {
  const int64_t size = settings_.NumMembers();
  return std::max<int64_t>(1, (settings_.cluster.slots + size - 1) / size);
}

Status LabDriver::MakeEngines() {
  // Scores that only an observer reads cost time only where that is asked for.
  const bool only_observes = settings_.admission.policy == AdmissionKind::kAcceptAll;
  const LabEngineOptions options{
      .max_batch = settings_.cluster.slots,
      .charge_rescoring = !only_observes || settings_.cluster.charge_observers};
  engines_.clear();
  for (int64_t i = 0; i < settings_.cluster.NumEngines(); ++i) {
    PACE_ASSIGN_OR_RETURN(
        std::unique_ptr<EngineCore> core,
        MakeEngine(engine_settings_, policy_, {.max_context = costs_.KvCapacity()}));
    engines_.push_back(std::make_unique<LabEngine>(costs_, options, std::move(core)));
  }
  return Status::Ok();
}

// Any engine's layout serves all of them.
Status LabDriver::Prepare(PublishedWeights& published) {
  PACE_ASSIGN_OR_RETURN(published.prepared,
                        engines_[0]->core().decoder().Prepare(published.weights));
  return Status::Ok();
}

Result<RunResult> LabDriver::Run() {
  PACE_RETURN_IF_ERROR(setup_.resume ? Resume() : Begin());
  while (!stopped_) {
    PACE_RETURN_IF_ERROR(Act());
    PACE_RETURN_IF_ERROR(run_->journal().status());
  }
  RunResult result = TakeResult();
  PACE_ASSIGN_OR_RETURN(result.weights, run_->trainer().HostSnapshot());
  return result;
}

Status LabDriver::Begin() {
  PACE_RETURN_IF_ERROR(MakeEngines());
  PACE_RETURN_IF_ERROR(ServeFirst());
  // The first weights reach every engine before the first group starts.
  for (int64_t i = 0; i < settings_.cluster.NumEngines(); ++i) {
    PACE_RETURN_IF_ERROR(HandleAtStepEnd(WorkerJoined{WorkerId(i), MaxGroups()}));
  }
  return Status::Ok();
}

Status LabDriver::HandleAtStepEnd(const Event& event) {
  finishing_step_ = true;
  const Status status = Handle(event);
  finishing_step_ = false;
  return status;
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
    return Unavailable("the run stands still: ", run_->coordinator().WhyWaiting());
  }
  const int64_t source = queue_.source();
  virtual_clock_.AdvanceTo(queue_.time());
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
  const int64_t num_tokens = engine.num_tokens();
  PACE_ASSIGN_OR_RETURN(LabReport report, engine.Act());
  num_sampled_ += engine.num_tokens() - num_tokens;
  rescoring_ += engine.rescore_time() - rescored;
  busy_ += engine.busy_time() - busy;
  for (FinishedResponse& response : report.finished) {
    PACE_RETURN_IF_ERROR(Finish(std::move(response)));
  }
  for (const MemberId id : report.paused) PACE_RETURN_IF_ERROR(OnRested(id));
  if (!report.synced.has_value()) return Status::Ok();
  return Handle(WorkerSynced{WorkerId(static_cast<int64_t>(index)), *report.synced});
}

Status LabDriver::FinishStep() {
  trained_at_.reset();
  PACE_ASSIGN_OR_RETURN(TrainedStep trained, training_.get());
  const auto num_engines = static_cast<double>(engines_.size());
  StepTimes times = step_clock_.EndStep(clock_.Now(), rescoring_ / num_engines);
  times.engines_busy = busy_ / num_engines;
  rescoring_ = busy_ = Seconds(0);
  const StepFinished finished = EndStep(std::move(trained), times, std::exchange(num_sampled_, 0));
  if (colocated_) {
    for (auto& engine : engines_) engine->Resume(clock_.Now());
  }
  // A checkpoint that is due is taken first, as in a run that is not stopped, so that the
  // stop leaves no trace. Otherwise the stop comes before the next step can begin. After the
  // last step the run ends anyway.
  const int64_t every = settings_.run.checkpoint_every;
  const int64_t version = finished.step.Next().step();
  if (version < settings_.run.num_steps) {
    PACE_RETURN_IF_ERROR(StopIfAsked(every > 0 && version % every == 0));
  }
  return HandleAtStepEnd(finished);
}

void LabDriver::Submit(size_t worker, GroupRequest request) {
  engines_[worker]->Submit(clock_.Now(), std::move(request));
}

GroupInFlight LabDriver::Cancel(size_t worker, GroupId group, bool /*keep*/) {
  GroupInFlight unfinished = engines_[worker]->Unfinished(group, settings_.NumMembers());
  engines_[worker]->Cancel(clock_.Now(), group);
  return unfinished;
}

Status LabDriver::Sync(size_t worker, const PublishedWeights& weights) {
  engines_[worker]->Sync(clock_.Now(), weights.version, weights.prepared);
  if (finishing_step_) sent_at_ = clock_.Now() + Seconds(costs_.SyncSeconds());
  return Status::Ok();
}

void LabDriver::StartTraining() {
  if (colocated_) {
    for (auto& engine : engines_) engine->Pause();
  }
}

// Evaluation runs elsewhere and costs the run nothing.
Status LabDriver::StartEvaluation(PolicyVersion version) {
  PACE_ASSIGN_OR_RETURN(std::vector<BenchmarkScore> scores, run_->evaluator().Run(newest_));
  EndEvaluation(version, std::move(scores));
  evaluated_.push_back(version);
  return Status::Ok();
}

void LabDriver::StartCheckpoint() {
  for (auto& engine : engines_) engine->Pause();
}

std::vector<const TrainSequence*> LabDriver::Computed(
    std::span<const TrainSequence> sequences) const {
  std::vector<const TrainSequence*> all;
  for (const TrainSequence& sequence : sequences) all.push_back(&sequence);
  if (!settings_.train.skip_equal_rewards) return all;
  std::vector<const TrainSequence*> computed;
  for (const size_t index : WithDifferentRewards(all)) computed.push_back(all[index]);
  return computed;
}

void LabDriver::StartTrainingIfReady() {
  if (!batch_.has_value() || trained_at_.has_value() || checkpoint_.has_value()) return;
  if (sent_at_.has_value()) return;
  if (colocated_ && !AllAtRest()) return;
  std::vector<TrainSequence> sequences = run_->BatchOf(*batch_);
  PassSize pass;
  for (const TrainSequence* sequence : Computed(sequences)) {
    pass += PassSize::Extending(0, static_cast<double>(sequence->tokens.size()));
  }
  trained_at_ = clock_.Now() + Seconds(costs_.TrainSeconds(pass, settings_.batch.num_updates));
  const auto policy = setup_.num_threads > 1 ? std::launch::async : std::launch::deferred;
  training_ = std::async(policy, [this, step = batch_->step, data = std::move(sequences)] {
    return Train(step, data);
  });
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

// How a run is saved and continues.

Status LabDriver::SaveIfAtRest() {
  if (!checkpoint_.has_value() || checkpointed_at_.has_value()) return Status::Ok();
  if (!evaluated_.empty() || sent_at_.has_value() || !AllAtRest()) return Status::Ok();
  step_clock_.Set(CurrentPart(), clock_.Now());
  PACE_ASSIGN_OR_RETURN(RunCheckpoint run, Describe());
  run.rescoring = rescoring_;
  run.busy = busy_;
  if (settings_.supply.ReadsTimes()) run.num_sampled = num_sampled_;
  for (const auto& engine : engines_) {
    for (GroupRequest& request : engine->core().Unfinished()) {
      run.in_flight.push_back(InFlightOf(std::move(request)));
    }
  }
  ForgetAbandonedCalls();
  for (const PendingCall& pending : calls_) run.calls.push_back(pending.call);
  if (!setup_.checkpoints.empty()) {
    // A run that was stopped continues from the checkpoint before: it stays.
    const int64_t keep = run.coordinator.stop_requested ? 0 : settings_.checkpoint.keep;
    PACE_ASSIGN_OR_RETURN(const SavedTrainer trainer, run_->CopyTrainer());
    PACE_ASSIGN_OR_RETURN(const std::string folder, Write(run, trainer, published_.weights, keep));
    if (setup_.observer != nullptr) setup_.observer->OnCheckpoint(folder);
  }
  if (stop_after_save_) {
    stopped_ = true;
    return Status::Ok();
  }
  PACE_RETURN_IF_ERROR(MakeEngines());
  PACE_RETURN_IF_ERROR(Continue(std::move(run.in_flight)));
  checkpointed_at_ = clock_.Now() + Seconds(settings_.cluster.checkpoint_s);
  return Status::Ok();
}

Status LabDriver::FinishCheckpoint() {
  const PolicyVersion step = *checkpoint_;
  checkpoint_.reset();
  checkpointed_at_.reset();
  for (auto& engine : engines_) engine->Resume(clock_.Now());
  return HandleAtStepEnd(CheckpointFinished{step});
}

Status LabDriver::Continue(std::vector<GroupInFlight> in_flight) {
  for (const auto& engine : engines_) {
    PACE_RETURN_IF_ERROR(engine->core().Sync(published_.version, published_.prepared));
    engine->Pause();
  }
  for (GroupInFlight& group : in_flight) {
    PACE_ASSIGN_OR_RETURN(ResumedGroup resumed, ResumeInFlight(std::move(group)));
    EngineCore& core = engines_[static_cast<size_t>(resumed.worker.value())]->core();
    PACE_RETURN_IF_ERROR(core.Submit(std::move(resumed.request)));
  }
  return Status::Ok();
}

Status LabDriver::Resume() {
  PACE_ASSIGN_OR_RETURN(ResumedRun resumed, Restore());
  RunCheckpoint& run = resumed.checkpoint;
  virtual_clock_.AdvanceTo(run.time);
  rescoring_ = run.rescoring;
  busy_ = run.busy;
  num_sampled_ = run.num_sampled;
  PACE_RETURN_IF_ERROR(MakeEngines());
  PACE_RETURN_IF_ERROR(CheckWorkers(run, std::ssize(engines_)).At(resumed.folder));
  PACE_ASSIGN_OR_RETURN(PublishedWeights published, Publish(run.served, resumed.served));
  Serve(std::move(published));
  PACE_RETURN_IF_ERROR(Continue(std::move(run.in_flight)).At(resumed.folder));
  PACE_RETURN_IF_ERROR(RestoreCalls(run).At(resumed.folder));
  checkpoint_ = run.step;
  checkpointed_at_ = clock_.Now() + Seconds(settings_.cluster.checkpoint_s);
  return run.coordinator.stop_requested ? Handle(RunResumed{}) : Status::Ok();
}

// How responses use the tool.

// A response that rests is in no pass, so the engine's own view of it is up to date.
Status LabDriver::OnRested(MemberId id) {
  const GroupTrajectories* const group = run_->store().Find(id.group);
  if (group == nullptr) return Status::Ok();  // abandoned as it came to rest
  EngineCore& core = engines_[static_cast<size_t>(group->worker.value())]->core();
  const PartialResponse* const response = core.Peek(id);
  if (response == nullptr) return Status::Ok();
  const std::optional<ToolRequest> wanted = run_->CallOf(id, *response);
  if (!wanted.has_value()) return Finish(core.FinishPaused(id));
  PACE_ASSIGN_OR_RETURN(ToolReply reply, run_->executor()->AnswerOrFail(*wanted));
  // A turn that ends the response is no call, and takes no time.
  if (reply.ends() || (wanted->turn != nullptr && wanted->turn->last)) {
    return UseReply(id, reply, Seconds(0));
  }
  const int64_t turn = CountTurns(*response).assistant - 1;
  const Seconds latency = ToolLatency(settings_.workload, static_cast<uint64_t>(settings_.run.seed),
                                      group->prompt, id.member, turn);
  const Seconds now = clock_.Now();
  AddCall({.id = id, .made = now, .due = tool_pool_.Call(now, latency)}, std::move(reply));
  return Status::Ok();
}

void LabDriver::AddCall(CallInFlight call, ToolReply reply) {
  PendingCall pending{.call = call, .reply = std::move(reply)};
  const auto key = [](const PendingCall& p) { return std::tuple(p.call.due, p.call.id); };
  const auto at =
      std::upper_bound(calls_.begin(), calls_.end(), pending,
                       [&](const PendingCall& a, const PendingCall& b) { return key(a) < key(b); });
  calls_.insert(at, std::move(pending));
}

Status LabDriver::FinishCall() {
  const PendingCall pending = std::move(calls_.front());
  calls_.erase(calls_.begin());
  if (run_->store().Find(pending.call.id.group) == nullptr) return Status::Ok();  // abandoned
  return UseReply(pending.call.id, pending.reply, clock_.Now() - pending.call.made);
}

Status LabDriver::UseReply(MemberId id, const ToolReply& reply, Seconds took) {
  const WorkerId worker = run_->store().At(id.group).worker;
  LabEngine& engine = *engines_[static_cast<size_t>(worker.value())];
  PACE_ASSIGN_OR_RETURN(auto tokens, TakeReply(id, *engine.core().Peek(id), reply, took));
  if (run_->store().Find(id.group) == nullptr) return Status::Ok();  // its environment failed
  if (tokens.has_value()) {
    engine.Continue(clock_.Now(), id, *std::move(tokens));
    return Status::Ok();
  }
  return Finish(engine.core().FinishPaused(id));
}

Status LabDriver::RestoreCalls(const RunCheckpoint& run) {
  for (const CallInFlight& call : run.calls) {
    const GroupTrajectories& group = run_->store().At(call.id.group);
    EngineCore& core = engines_[static_cast<size_t>(group.worker.value())]->core();
    const PartialResponse* const response = core.Peek(call.id);
    const std::optional<ToolRequest> wanted =
        response == nullptr ? std::nullopt : run_->CallOf(call.id, *response);
    if (!wanted.has_value()) {
      return DataLoss("calls: response ", call.id.member, " of group ", call.id.group,
                      " makes no call");
    }
    tool_pool_.Restore(call.due);
    PACE_ASSIGN_OR_RETURN(ToolReply reply, run_->executor()->AnswerOrFail(*wanted));
    AddCall(call, std::move(reply));
  }
  return Status::Ok();
}

void LabDriver::ForgetAbandonedCalls() {
  std::erase_if(calls_, [this](const PendingCall& pending) {
    return run_->store().Find(pending.call.id.group) == nullptr;
  });
  tool_pool_ = ToolPool(settings_.workload.tool_concurrency);
  for (const PendingCall& pending : calls_) tool_pool_.Restore(pending.call.due);
}

}  // namespace

Status CheckLabSettings(const Settings& settings) {
  if (settings.cluster.failure_every_s > 0) {
    return InvalidArgument("cluster.failure_every_s = ", settings.cluster.failure_every_s,
                           ": the lab loses no engines (must be 0; pace sim does)");
  }
  if (settings.cluster.rescore_blocks) {
    return InvalidArgument(
        "cluster.rescore_blocks = true: in the lab the trainer never waits for "
        "rescoring (pace sim does)");
  }
  return CheckPrefixScores(settings, /*lab=*/true);
}

Result<RunResult> RunLab(const Settings& settings, const Policy& policy, const RunSetup& setup) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  PACE_RETURN_IF_ERROR(CheckLabSettings(settings));
  PACE_ASSIGN_OR_RETURN(const CostModel costs,
                        CostModel::Create(settings.model, settings.gpu, settings.cluster));
  VirtualClock clock;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<TrainingRun> run,
                        TrainingRun::Create(settings, policy, clock, setup));
  LabDriver driver(settings, policy, setup, costs, clock, std::move(run));
  return driver.Run();
}

}  // namespace pace
