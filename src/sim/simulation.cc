#include "sim/simulation.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/cost_model.h"
#include "cluster/event_queue.h"
#include "cluster/tool_pool.h"
#include "config/settings.h"
#include "coordinator/coordinator.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/random.h"
#include "record/step_clock.h"
#include "sim/engine.h"
#include "sim/group_store.h"
#include "sim/recorder.h"
#include "sim/response.h"
#include "sim/workload.h"

namespace pace {
namespace {

constexpr uint32_t kFailureStream = 0x5801;
// Losses within one step, per engine, after which the run fails.
constexpr int64_t kMaxLossesPerEngine = 1000;
constexpr Seconds kNever{std::numeric_limits<double>::infinity()};

EngineOptions EngineOptionsOf(const Settings& settings, const CostModel& costs) {
  const bool only_observes = settings.admission.policy == AdmissionKind::kAcceptAll;
  return {.slots = settings.cluster.slots,
          .kv_capacity = costs.KvCapacity(),
          .reprefill = settings.cluster.kv_at_sync == KvAtSync::kRecompute,
          .rescore = settings.admission.UsesPrefixScores() &&
                     (!only_observes || settings.cluster.charge_observers),
          .prefix = settings.prefix};
}

// Driver: carries out the coordinator's commands under virtual time.
//
// One loop: the engine or timer that is due acts, the result becomes an event, the coordinator
// answers with commands, and the driver carries them out. It makes no decision about groups.
// An event at a known time that is not an engine's.
enum class TimerKind {
  kTrained,
  kToolReturned,
  kEngineLost,
  kEngineBack,
  kCheckpointed,
  kEvaluated
};
struct Timer {
  Seconds time{0};
  int64_t order = 0;  // in which timers were set, for equal times
  TimerKind kind = TimerKind::kTrained;
  GroupId group{};             // kToolReturned
  ResponseIndex response = 0;  // kToolReturned
  size_t engine = 0;           // kEngineLost, kEngineBack
  PolicyVersion version{};     // kTrained, kCheckpointed, kEvaluated
  bool operator>(const Timer& other) const {
    return time != other.time ? time > other.time : order > other.order;
  }
};

class Driver {
 public:
  // All arguments outlive the driver.
  Driver(const Settings& settings, const SimOptions& options, const CostModel& costs,
         const Workload& workload);

  // Runs to the end.
  Result<SimResult> Run();

 private:
  struct alignas(64) EngineSlot {
    WorkerId worker;
    bool blocks_trainer = false;  // its sync is one the trainer waits for
    bool gone = false;            // left for good
    bool counted_busy = false;
    bool counted_rescoring = false;
    std::optional<Engine> engine;  // none while lost
  };

  void Handle(const Event& event);
  void Execute(const StartGroup& command);
  void Execute(const AbandonGroup& command);
  void Execute(const SyncWeights& command);
  void Execute(const TrainBatch& command);
  void Execute(const DropGroup& command);
  void Execute(const Evaluate& command);
  void Execute(const Checkpoint& command);
  void Execute(const Stop&) { stopped_ = true; }

  void ActEngine(size_t index);
  void EndStretch(ResponseIndex response);
  void FinishResponse(ResponseIndex response);
  void ActTimer();
  void FinishStep(PolicyVersion step);
  // The world becomes the one of settings.change.
  void Change();
  void JoinEngine(size_t index);
  void LoseEngine(size_t index);
  // Removes a running group and its responses.
  void DiscardGroup(size_t slot, bool keep_prefix);
  void StartTrainingIfReady();

  void SetTimer(Seconds time, Timer timer);
  // Updates queue and counts after an engine's change.
  void Touch(size_t index);
  StepPart CurrentPart() const;
  int64_t MaxGroups() const;
  Engine& EngineOf(size_t index) { return *engines_[index].engine; }
  size_t TimerSource() const { return engines_.size(); }

  // Constant after construction.
  const Settings& settings_;
  const SimOptions& options_;
  const CostModel& costs_;
  const Workload& workload_;
  const EngineOptions engine_options_;
  const CounterRandom failures_;
  const bool colocated_;

  VirtualClock clock_;
  GroupStore groups_;
  Recorder recorder_;
  Coordinator coordinator_;
  EventQueue queue_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::vector<EngineSlot> engines_;
  std::vector<size_t> engine_of_worker_;
  ToolPool tools_;
  StepClock step_clock_;
  Event event_;  // reused for the millions of finished responses

  bool stopped_ = false;
  bool changed_ = false;
  bool training_ = false;
  bool checkpointing_ = false;
  bool finishing_step_ = false;  // the trainer waits for syncs sent now
  std::vector<size_t> batch_;    // slots of the current TrainBatch
  bool batch_pending_ = false;
  PolicyVersion batch_step_;
  int64_t num_blocking_syncs_ = 0;
  int64_t num_busy_ = 0, num_rescoring_ = 0, num_paused_ = 0;
  int64_t next_timer_ = 0;

  // Of lost engines.
  int64_t lost_tokens_ = 0, lost_interrupted_ = 0, lost_preempted_ = 0;
  Seconds lost_rescore_{0}, lost_idle_{0};
  // Since the run began, and at the end of the previous step.
  int64_t num_tokens_never_trained_ = 0, num_trained_groups_ = 0, num_lost_workers_ = 0;
  int64_t step_tokens_ = 0, step_interrupted_ = 0, losses_in_step_ = 0;
  Seconds step_rescore_{0}, step_idle_{0};
  int64_t num_events_ = 0;
  Status failure_;
};

std::unique_ptr<AdmissionPolicy> AdmissionOf(const Settings& settings, const SimOptions& options) {
  if (options.admission) return options.admission();
  return MakeAdmissionPolicy(settings.admission, settings.batch.num_groups,
                             static_cast<uint64_t>(settings.run.seed));
}

std::unique_ptr<SupplyPolicy> SupplyOf(const Settings& settings, const SimOptions& options) {
  if (options.supply) return options.supply();
  return MakeSupplyPolicy(settings.supply, settings.batch.num_groups);
}

Driver::Driver(const Settings& settings, const SimOptions& options, const CostModel& costs,
               const Workload& workload)
    : settings_(settings),
      options_(options),
      costs_(costs),
      workload_(workload),
      engine_options_(EngineOptionsOf(settings, costs)),
      failures_(static_cast<uint64_t>(settings.run.seed), kFailureStream),
      colocated_(settings.cluster.layout == Layout::kColocated),
      groups_(workload, settings.NumMembers(),
              options.writer != nullptr && options.writer->level() == RecordLevel::kFull),
      recorder_(settings, workload, clock_, groups_, options.writer),
      coordinator_(CoordinatorOptions::Of(settings), AdmissionOf(settings, options),
                   SupplyOf(settings, options), &recorder_),
      queue_(settings.cluster.NumEngines() + 1),
      engines_(static_cast<size_t>(settings.cluster.NumEngines())),
      tools_(workload.options().tool_concurrency) {}

Result<SimResult> Driver::Run() {
  // The first weights reach every engine before the first group starts.
  finishing_step_ = true;
  for (size_t i = 0; i < engines_.size(); ++i) JoinEngine(i);
  finishing_step_ = false;
  while (!stopped_ && failure_.ok()) {
    if (queue_.empty() || queue_.time() == kNever) {
      return Unavailable("the run stands still: ", coordinator_.WhyWaiting());
    }
    const auto source = static_cast<size_t>(queue_.source());
    clock_.AdvanceTo(queue_.time());
    step_clock_.Set(CurrentPart(), clock_.Now());
    if (source == TimerSource()) {
      ActTimer();
    } else {
      ActEngine(source);
    }
    StartTrainingIfReady();
    step_clock_.Set(CurrentPart(), clock_.Now());
    if (!recorder_.status().ok()) return recorder_.status();
  }
  PACE_RETURN_IF_ERROR(failure_);

  SimResult result;
  const Seconds now = clock_.Now();
  SimTotals& totals = result.totals;
  recorder_.Summarise(coordinator_, result);
  totals.time = now;
  totals.gpu_seconds = now.count() * static_cast<double>(settings_.cluster.AllGpus());
  totals.num_trained_groups = num_trained_groups_;
  totals.num_tokens_never_trained = num_tokens_never_trained_;
  totals.num_lost_workers = num_lost_workers_;
  totals.num_events = num_events_;
  totals.num_tokens_generated = lost_tokens_;
  totals.num_interrupted = lost_interrupted_;
  totals.num_preempted = lost_preempted_;
  Seconds idle = lost_idle_;
  for (const EngineSlot& slot : engines_) {
    if (!slot.engine.has_value()) continue;
    totals.num_tokens_generated += slot.engine->NumTokens(now);
    totals.num_interrupted += slot.engine->num_interrupted();
    totals.num_preempted += slot.engine->num_preempted();
    idle += slot.engine->IdleTime(now);
  }
  const Seconds all = now * static_cast<double>(engines_.size());
  totals.engine_utilisation = all > Seconds(0) ? 1 - idle / all : 0;
  return result;
}

void Driver::Handle(const Event& event) {
  ++num_events_;
  recorder_.OnEvent(event);
  for (const Command& command : coordinator_.Handle(event)) {
    std::visit([this](const auto& typed) { Execute(typed); }, command);
  }
  if (coordinator_.failed() && failure_.ok()) failure_ = coordinator_.failure();
  if (options_.check_invariants) coordinator_.CheckInvariants();
}

void Driver::Execute(const StartGroup& command) {
  const size_t engine = engine_of_worker_[static_cast<size_t>(command.worker.value())];
  const double length = changed_ ? settings_.change.length : 1;
  const size_t slot = groups_.Start(command.group, command.prompt, engine, length);
  for (int64_t member = 0; member < settings_.NumMembers(); ++member) {
    EngineOf(engine).Enqueue(clock_.Now(), groups_.IndexOf(slot, member));
  }
  Touch(engine);
}

void Driver::Execute(const AbandonGroup& command) {
  DiscardGroup(groups_.Find(command.group), command.keep_prefix);
}

void Driver::Execute(const SyncWeights& command) {
  const size_t index = engine_of_worker_[static_cast<size_t>(command.worker.value())];
  EngineOf(index).BeginSync(clock_.Now(), command.version);
  engines_[index].blocks_trainer = finishing_step_;
  num_blocking_syncs_ += finishing_step_ ? 1 : 0;
  Touch(index);
}

void Driver::Execute(const TrainBatch& command) {
  batch_.clear();
  for (const GroupId group : command.groups) batch_.push_back(groups_.Find(group));
  batch_pending_ = true;
  batch_step_ = command.step;
  if (!colocated_) return;
  for (size_t i = 0; i < engines_.size(); ++i) {
    EngineOf(i).Pause(clock_.Now());
    Touch(i);
  }
}

void Driver::Execute(const DropGroup& command) {
  const size_t slot = groups_.Find(command.group);
  num_tokens_never_trained_ += groups_.NumTokens(slot);
  groups_.Free(slot);
}

// Evaluation runs elsewhere and costs the run nothing.
void Driver::Execute(const Evaluate& command) {
  SetTimer(clock_.Now(), {.kind = TimerKind::kEvaluated, .version = command.version});
}

void Driver::Execute(const Checkpoint& command) {
  checkpointing_ = true;
  recorder_.OnCheckpoint(command.step, coordinator_);
  SetTimer(clock_.Now() + Seconds(settings_.cluster.checkpoint_s),
           {.kind = TimerKind::kCheckpointed, .version = command.step});
}

void Driver::StartTrainingIfReady() {
  if (!batch_pending_ || num_blocking_syncs_ > 0 || checkpointing_) return;
  if (settings_.cluster.rescore_blocks && num_rescoring_ > 0) return;
  if (colocated_ && num_paused_ < static_cast<int64_t>(engines_.size())) return;
  PassSize pass;
  for (const size_t slot : batch_) {
    if (settings_.train.skip_equal_rewards && groups_.HasEqualRewards(slot)) continue;
    pass += groups_.TrainingPass(slot);
  }
  const double speed = changed_ ? settings_.change.trainer_speed : 1;
  const Seconds seconds(costs_.TrainSeconds(pass, settings_.batch.num_updates) / speed);
  batch_pending_ = false;
  training_ = true;
  SetTimer(clock_.Now() + seconds, {.kind = TimerKind::kTrained, .version = batch_step_});
}

StepPart Driver::CurrentPart() const {
  if (training_) return StepPart::kTrain;
  if (num_blocking_syncs_ > 0) return StepPart::kSync;
  if (checkpointing_) return StepPart::kOther;
  if (settings_.cluster.rescore_blocks && num_rescoring_ > 0) return StepPart::kRescoreVisible;
  if (batch_pending_) return StepPart::kOther;
  const bool all_rescore = num_rescoring_ > 0 && num_rescoring_ == num_busy_;
  return all_rescore ? StepPart::kRescoreVisible : StepPart::kWaitData;
}

void Driver::SetTimer(Seconds time, Timer timer) {
  timer.time = time;
  timer.order = next_timer_++;
  timers_.push(timer);
  queue_.Set(static_cast<int64_t>(TimerSource()), timers_.top().time);
}

void Driver::Touch(size_t index) {
  EngineSlot& slot = engines_[index];
  const Engine* engine = slot.engine.has_value() ? &*slot.engine : nullptr;
  const bool busy = engine != nullptr && engine->busy();
  const bool rescoring = engine != nullptr && engine->rescoring();
  num_busy_ += static_cast<int>(busy) - static_cast<int>(slot.counted_busy);
  num_rescoring_ += static_cast<int>(rescoring) - static_cast<int>(slot.counted_rescoring);
  slot.counted_busy = busy;
  slot.counted_rescoring = rescoring;
  if (engine == nullptr || engine->next_time() == kNever) {
    queue_.Remove(static_cast<int64_t>(index));
  } else {
    queue_.Set(static_cast<int64_t>(index), engine->next_time());
  }
}

int64_t Driver::MaxGroups() const {
  const int64_t size = settings_.NumMembers();
  return std::max<int64_t>(1, (settings_.cluster.slots + size - 1) / size);
}

// --- what engines, trainer and tools do, and the events it becomes ---

void Driver::ActEngine(size_t index) {
  const EngineReport report = EngineOf(index).Act();
  Touch(index);
  switch (report.event) {
    case EngineEvent::kNothing:
    case EngineEvent::kRescored:
      return;
    case EngineEvent::kStretchEnded:
      return EndStretch(report.response);
    case EngineEvent::kPaused:
      ++num_paused_;
      return;
    case EngineEvent::kSynced:
      if (std::exchange(engines_[index].blocks_trainer, false)) --num_blocking_syncs_;
      Handle(WorkerSynced{engines_[index].worker, EngineOf(index).version()});
      return;
  }
}

void Driver::EndStretch(ResponseIndex index) {
  Response& response = groups_.response(index);
  if (response.num_done == response.num_tokens) return FinishResponse(index);
  const GroupSlot& slot = groups_.slot(groups_.SlotOf(index));
  const Seconds latency =
      workload_.ToolLatency(slot.prompt, groups_.MemberOf(index), response.turn);
  const auto tool_tokens = static_cast<int32_t>(workload_.options().tool_tokens);
  response.context += tool_tokens;
  response.uncached = tool_tokens;
  ++response.turn;
  SetTimer(tools_.Call(clock_.Now(), latency),
           {.kind = TimerKind::kToolReturned, .group = slot.group, .response = index});
}

void Driver::FinishResponse(ResponseIndex index) {
  const size_t slot = groups_.SlotOf(index);
  Response& response = groups_.response(index);
  response.state = ResponseState::kFinished;
  response.completed = coordinator_.version();
  ++groups_.slot(slot).num_finished;
  if (!std::holds_alternative<ResponseFinished>(event_)) event_ = ResponseFinished{};
  ResponseFinished& finished = std::get<ResponseFinished>(event_);
  finished.group = groups_.slot(slot).group;
  finished.member = groups_.MemberOf(index);
  const auto segments = groups_.segments(index);
  finished.segments.assign(segments.begin(), segments.end());
  finished.prefix_score = recorder_.PrefixScore(slot, index);
  finished.num_bytes = ResponseBytes(response);
  Handle(event_);
}

void Driver::ActTimer() {
  const Timer timer = timers_.top();
  timers_.pop();
  if (timers_.empty()) {
    queue_.Remove(static_cast<int64_t>(TimerSource()));
  } else {
    queue_.Set(static_cast<int64_t>(TimerSource()), timers_.top().time);
  }
  switch (timer.kind) {
    case TimerKind::kTrained:
      return FinishStep(timer.version);
    case TimerKind::kToolReturned: {
      const GroupSlot& slot = groups_.slot(groups_.SlotOf(timer.response));
      // The group may be gone, and its slot another's.
      if (!slot.used || slot.group != timer.group) return;
      EngineOf(slot.engine).Enqueue(clock_.Now(), timer.response);
      return Touch(slot.engine);
    }
    case TimerKind::kEngineLost:
      return LoseEngine(timer.engine);
    case TimerKind::kEngineBack:
      if (!engines_[timer.engine].gone) JoinEngine(timer.engine);
      return;
    case TimerKind::kCheckpointed:
      checkpointing_ = false;
      return Handle(CheckpointFinished{timer.version});
    case TimerKind::kEvaluated:
      return Handle(EvaluationFinished{timer.version});
  }
}

void Driver::FinishStep(PolicyVersion step) {
  const Seconds now = clock_.Now();
  training_ = false;
  num_trained_groups_ += static_cast<int64_t>(batch_.size());
  int64_t num_tokens = lost_tokens_, num_interrupted = lost_interrupted_;
  Seconds rescore = lost_rescore_, idle = lost_idle_;
  for (const EngineSlot& slot : engines_) {
    if (!slot.engine.has_value()) continue;
    num_tokens += slot.engine->NumTokens(now);
    num_interrupted += slot.engine->num_interrupted();
    rescore += slot.engine->rescore_time();
    idle += slot.engine->IdleTime(now);
  }
  const double num_engines = static_cast<double>(engines_.size());
  StepTimes times = step_clock_.EndStep(now, (rescore - step_rescore_) / num_engines);
  times.engines_busy = times.step - (idle - step_idle_) / num_engines;
  recorder_.EndStep(times,
                    {.time = now,
                     .gpu_seconds = now.count() * static_cast<double>(settings_.cluster.AllGpus()),
                     .num_trained_groups = num_trained_groups_,
                     .num_tokens_generated = num_tokens,
                     .num_tokens_never_trained = num_tokens_never_trained_,
                     .num_interrupted = num_interrupted - step_interrupted_,
                     .num_step_tokens = num_tokens - step_tokens_},
                    coordinator_);
  const int64_t num_step_tokens = num_tokens - step_tokens_;
  step_tokens_ = num_tokens;
  step_interrupted_ = num_interrupted;
  step_rescore_ = rescore;
  step_idle_ = idle;
  losses_in_step_ = 0;
  for (const size_t slot : batch_) groups_.Free(slot);
  if (colocated_) {
    num_paused_ = 0;
    for (size_t i = 0; i < engines_.size(); ++i) {
      EngineOf(i).Resume(now);
      Touch(i);
    }
  }
  finishing_step_ = true;
  StepFinished finished{step};
  if (settings_.supply.ReadsTimes()) {
    finished.seconds = times.step.count();
    finished.waited = times.wait_data.count();
    finished.num_tokens = num_step_tokens;
  }
  Handle(finished);
  finishing_step_ = false;
  if (step.step() + 1 == settings_.change.step) Change();
  if (options_.progress) options_.progress(step.step() + 1, settings_.run.num_steps);
}

void Driver::Change() {
  changed_ = true;
  for (int64_t i = 0; i < settings_.change.lost_engines; ++i) {
    const size_t index = engines_.size() - 1 - static_cast<size_t>(i);
    engines_[index].gone = true;
    if (engines_[index].engine.has_value()) LoseEngine(index);
  }
}

void Driver::JoinEngine(size_t index) {
  EngineSlot& slot = engines_[index];
  slot.engine.emplace(costs_, engine_options_, groups_.table(), clock_.Now());
  slot.worker = WorkerId(static_cast<int64_t>(engine_of_worker_.size()));
  engine_of_worker_.push_back(index);
  if (settings_.cluster.failure_every_s > 0) {
    const double life = settings_.cluster.failure_every_s *
                        failures_.Exponential(static_cast<uint64_t>(slot.worker.value()));
    SetTimer(clock_.Now() + Seconds(life), {.kind = TimerKind::kEngineLost, .engine = index});
  }
  Handle(WorkerJoined{slot.worker, MaxGroups()});
}

void Driver::LoseEngine(size_t index) {
  EngineSlot& slot = engines_[index];
  if (!slot.engine.has_value()) return;  // it was lost for good before its time
  for (size_t group = 0; group < groups_.num_slots(); ++group) {
    const GroupSlot& candidate = groups_.slot(group);
    const bool running = candidate.num_finished < settings_.NumMembers();
    if (candidate.used && running && candidate.engine == index) {
      DiscardGroup(group, /*keep_prefix=*/false);
    }
  }
  const Engine& engine = *slot.engine;
  lost_tokens_ += engine.NumTokens(clock_.Now());
  lost_interrupted_ += engine.num_interrupted();
  lost_preempted_ += engine.num_preempted();
  lost_rescore_ += engine.rescore_time();
  lost_idle_ += engine.IdleTime(clock_.Now());
  if (std::exchange(slot.blocks_trainer, false)) --num_blocking_syncs_;
  slot.engine.reset();
  Touch(index);
  ++num_lost_workers_;
  if (++losses_in_step_ > kMaxLossesPerEngine * static_cast<int64_t>(engines_.size())) {
    failure_ = Unavailable("cluster.failure_every_s = ", settings_.cluster.failure_every_s,
                           ": engines are lost faster than a step can finish");
  }
  SetTimer(clock_.Now() + Seconds(settings_.cluster.restart_s),
           {.kind = TimerKind::kEngineBack, .engine = index});
  Handle(WorkerLost{slot.worker});
}

void Driver::DiscardGroup(size_t slot, bool keep_prefix) {
  const size_t engine = groups_.slot(slot).engine;
  for (int64_t member = 0; member < settings_.NumMembers(); ++member) {
    EngineOf(engine).Remove(clock_.Now(), groups_.IndexOf(slot, member));
  }
  Touch(engine);
  if (keep_prefix) {
    groups_.Keep(slot);
  } else {
    num_tokens_never_trained_ += groups_.NumTokens(slot);
  }
  groups_.Free(slot);
}

Status CheckFits(const Settings& settings, const CostModel& costs) {
  const int64_t longest = settings.workload.prompt_tokens + settings.workload.max_tokens;
  if (longest > costs.KvCapacity()) {
    return InvalidArgument("workload.max_tokens = ", settings.workload.max_tokens,
                           ": one response with its prompt needs ", longest,
                           " tokens of KV, an engine has ", costs.KvCapacity(),
                           " (raise cluster.tensor_parallel or cluster.memory_share)");
  }
  if (settings.cluster.failure_every_s > 0 && settings.cluster.layout == Layout::kColocated) {
    return InvalidArgument("cluster.failure_every_s = ", settings.cluster.failure_every_s,
                           ": must be 0 where cluster.layout is colocated (a lost engine would "
                           "take the trainer with it)");
  }
  const int64_t most =
      settings.cluster.layout == Layout::kColocated ? 0 : settings.cluster.NumEngines() - 1;
  if (settings.change.lost_engines > most) {
    return InvalidArgument("change.lost_engines = ", settings.change.lost_engines,
                           ": must be <= ", most,
                           " (one of the engines must stay, and all of them "
                           "where cluster.layout is colocated)");
  }
  return Status::Ok();
}

}  // namespace

Result<SimResult> RunSimulation(const Settings& settings, const SimOptions& options) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  if (!options.admission) PACE_RETURN_IF_ERROR(CheckBuiltIn(settings.admission));
  PACE_ASSIGN_OR_RETURN(const auto costs,
                        CostModel::Create(settings.model, settings.gpu, settings.cluster));
  PACE_RETURN_IF_ERROR(CheckFits(settings, costs));
  PACE_ASSIGN_OR_RETURN(
      const auto workload,
      Workload::Create(settings.workload, static_cast<uint64_t>(settings.run.seed)));
  Driver driver(settings, options, costs, workload);
  return driver.Run();
}

}  // namespace pace
