#include "runtime/runtime_driver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "execution/engine_maker.h"
#include "execution/gpu_plan.h"
#include "model/devices.h"
#include "runtime/affinity.h"

namespace pace {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How often the driver looks up when nothing happens.
constexpr std::chrono::milliseconds kLookUp(100);
// Over about so long the shown speed is a mean.
constexpr double kRateSeconds = 5;

}  // namespace

RuntimeDriver::RuntimeDriver(const Settings& settings, const Policy& policy,
                             const TrainingOptions& options)
    : settings_(settings),
      policy_(policy),
      options_(options),
      awaited_syncs_(static_cast<size_t>(settings.engine.count)) {}

Status RuntimeDriver::Prepare() {
  PACE_RETURN_IF_ERROR(PrepareGpu(settings_, policy_.config));
  PACE_ASSIGN_OR_RETURN(parts_, RunParts::Create(settings_, policy_, clock_, options_.writer,
                                                 !options_.checkpoints.empty()));
  parts_.run->journal().Watch(options_.observer);
  parts_.run->journal().SetNumGpus(settings_.policy.device == PolicyDevice::kCuda ? 1 : 0);
  const int64_t engine_cores = settings_.engine.count * settings_.engine.threads;
  {
    const ScopedAffinity trainer_cores(settings_.runtime.pin_threads, engine_cores,
                                       settings_.train.num_threads);
    training_thread_ = std::make_unique<TaskThread>();
  }
  evaluation_thread_ = std::make_unique<TaskThread>();
  saving_thread_ = std::make_unique<TaskThread>();
  parts_.NoteTools(options_.observer);
  if (parts_.executor != nullptr) {
    tool_threads_ = std::make_unique<ToolThreads>(parts_.executor, settings_.tools.max_programs);
  }
  return Status::Ok();
}

Status RuntimeDriver::MakeEngines() {
  for (int64_t i = 0; i < settings_.engine.count; ++i) {
    const int64_t threads = settings_.engine.threads;
    const ScopedAffinity cores(settings_.runtime.pin_threads, i * threads, threads);
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> core,
                          MakeEngine(settings_, policy_, {.score_moment = ScoreMoment::kEnd}));
    const auto index = static_cast<size_t>(i);
    engines_.push_back(std::make_unique<RolloutEngine>(
        std::move(core), [this, index] { mailbox_.Put(EngineSpoke{index}); }));
  }
  return Status::Ok();
}

int64_t RuntimeDriver::MaxGroups() const {
  // An engine queues what it cannot run yet: the supply policy is the bound.
  return std::max<int64_t>(1, settings_.supply.MaxGroups(settings_.batch.num_groups));
}

Result<TrainingResult> RuntimeDriver::Run() {
  PACE_RETURN_IF_ERROR(Prepare());
  PACE_RETURN_IF_ERROR(options_.resume ? Resume() : Begin());
  PACE_RETURN_IF_ERROR(Loop());
  result_.time = clock_.Now();
  PACE_RETURN_IF_ERROR(FinishSaves());
  result_.steps_done = parts_.run->coordinator().version().step();
  result_.stopped_early = result_.steps_done < settings_.run.num_steps;
  // A step that was under way is not part of the result.
  const bool as_served = newest_weights_.residence() == Residence::kHost || batch_.has_value();
  PACE_ASSIGN_OR_RETURN(result_.weights, as_served ? ToHost(policy_.config, newest_weights_)
                                                   : parts_.learner->HostSnapshot());
  return std::move(result_);
}

Status RuntimeDriver::Begin() {
  newest_weights_ = served_weights_ = parts_.learner->Snapshot();
  served_version_ = PolicyVersion(0);
  PACE_RETURN_IF_ERROR(MakeEngines());
  for (int64_t i = 0; i < settings_.engine.count; ++i) {
    PACE_RETURN_IF_ERROR(Handle(WorkerJoined{WorkerId(i), MaxGroups()}));
  }
  return Status::Ok();
}

Status RuntimeDriver::Loop() {
  last_event_ = last_pulse_ = last_stall_note_ = SteadyClock::now();
  while (!stopped_) {
    std::vector<Message> messages = mailbox_.Take(SteadyClock::now() + kLookUp);
    for (Message& message : messages) {
      PACE_RETURN_IF_ERROR(std::visit([this](auto& typed) { return On(typed); }, message));
    }
    PACE_RETURN_IF_ERROR(parts_.run->journal().status());
    if (!stop_asked_ && options_.stop && options_.stop()) {
      stop_asked_ = true;
      // A checkpoint that is due anyway serves.
      stop_after_save_ = checkpoint_.has_value() && !options_.checkpoints.empty();
      if (!stop_after_save_) PACE_RETURN_IF_ERROR(Handle(StopRequested{}));
    }
    PACE_RETURN_IF_ERROR(SaveIfReady());
    WatchForStall(!messages.empty());
    Pulse();
  }
  return Status::Ok();
}

Status RuntimeDriver::On(EngineSpoke& message) {
  return HearEngine(message.worker);
}

Status RuntimeDriver::HearEngine(size_t worker) {
  for (RolloutEvent& event : engines_[worker]->Wait(SteadyClock::now())) {
    PACE_RETURN_IF_ERROR(OnEngine(worker, event));
  }
  return Status::Ok();
}

Status RuntimeDriver::OnEngine(size_t worker, RolloutEvent& event) {
  if (auto* finished = std::get_if<FinishedResponse>(&event)) {
    const std::optional<Event> told = parts_.run->Finish(std::move(*finished));
    return told.has_value() ? Handle(*told) : Status::Ok();
  }
  if (auto* rested = std::get_if<ResponsePaused>(&event)) {
    OnRested(worker, rested->id, std::move(rested->response));
    return Status::Ok();
  }
  if (const auto* synced = std::get_if<WeightsSynced>(&event)) {
    // The first weights of a resumed engine are news to nobody.
    if (awaited_syncs_[worker] != synced->version) return Status::Ok();
    awaited_syncs_[worker].reset();
    return Handle(WorkerSynced{WorkerId(static_cast<int64_t>(worker)), synced->version});
  }
  if (const auto* refused = std::get_if<GroupRefused>(&event)) {
    return refused->error.At(Concat("group ", refused->group.value()));
  }
  if (const auto* failed = std::get_if<DeviceFailed>(&event)) return failed->error;
  if (const auto* cancelled = std::get_if<GroupCancelled>(&event)) {
    parts_.run->CountCancelled(cancelled->request.resumed);
  }
  return Status::Ok();
}

void RuntimeDriver::OnRested(size_t worker, MemberId id, PartialResponse response) {
  if (parts_.run->store().Find(id.group) == nullptr) return;  // abandoned meanwhile
  const std::optional<ToolCall> call = parts_.run->CallOf(response);
  if (!call.has_value()) return engines_[worker]->FinishPaused(id);
  tool_threads_->Ask(*call, [this, worker, id, response = std::move(response),
                             made = clock_.Now()](Result<ToolReply> reply) {
    mailbox_.Put(ToolReplied{worker, id, response, made, std::move(reply)});
  });
}

Status RuntimeDriver::On(ToolReplied& message) {
  if (!message.reply.ok()) return message.reply.status();
  if (parts_.run->store().Find(message.id.group) == nullptr) return Status::Ok();
  // Not PACE_ASSIGN_OR_RETURN: g++ 12 takes the vector of a moved optional for uninitialized.
  auto tokens =
      parts_.run->Reply(message.id, message.response, *message.reply, clock_.Now() - message.made);
  PACE_RETURN_IF_ERROR(tokens.status());
  RolloutEngine& engine = *engines_[message.worker];
  if (tokens->has_value()) {
    engine.Continue(message.id, **std::move(tokens));
  } else {
    engine.FinishPaused(message.id);
  }
  return Status::Ok();
}

Status RuntimeDriver::On(Trained& message) {
  if (!message.metrics.ok()) return message.metrics.status();
  step_clock_.Set(StepPart::kSync, clock_.Now());
  const TrainBatch batch = std::move(*batch_);
  batch_.reset();
  const PolicyVersion version = batch.step.Next();
  newest_weights_ = std::move(*message.weights);
  if (version.step() % settings_.supply.sync_interval == 0) {
    served_version_ = version;
    served_weights_ = newest_weights_;
  }
  const Seconds rescored = RescoreTime();
  const auto num_engines = static_cast<double>(engines_.size());
  StepTimes times = step_clock_.EndStep(clock_.Now(), (rescored - rescored_before_) / num_engines);
  rescored_before_ = rescored;
  const Seconds busy = BusyTime();
  times.engines_busy = (busy - busy_before_) / num_engines;
  busy_before_ = busy;
  parts_.run->EndStep(batch, times, *message.metrics);
  result_.rows.push_back(parts_.run->journal().last_row());
  if (options_.observer != nullptr) {
    options_.observer->OnStep(version.step(), parts_.run->journal().last_row());
  }
  const Status status = Handle(StepFinished{batch.step});
  if (!batch_.has_value()) {
    const StepPart part = checkpoint_.has_value() ? StepPart::kOther : StepPart::kWaitData;
    step_clock_.Set(part, clock_.Now());
  }
  return status;
}

Status RuntimeDriver::On(Evaluated& message) {
  --num_evaluations_;
  if (!message.scores.ok()) return message.scores.status();
  parts_.run->journal().AddEvaluation(message.version, *message.scores);
  if (options_.observer != nullptr) {
    options_.observer->OnEvaluation(message.version, *message.scores);
  }
  result_.evaluations.emplace_back(message.version, std::move(message.scores).value());
  return Handle(EvaluationFinished{message.version});
}

Status RuntimeDriver::Handle(const Event& event) {
  for (const Command& command : parts_.run->Handle(event)) {
    PACE_RETURN_IF_ERROR(std::visit([this](const auto& typed) { return Execute(typed); }, command));
  }
  return Status::Ok();
}

Status RuntimeDriver::Execute(const StartGroup& command) {
  PACE_ASSIGN_OR_RETURN(GroupRequest request, parts_.run->Start(command));
  const auto worker = static_cast<size_t>(command.worker.value());
  engines_[worker]->Submit(std::move(request));
  return Status::Ok();
}

Status RuntimeDriver::Execute(const AbandonGroup& command) {
  PACE_RETURN_IF_ERROR(TrainingRun::CheckAbandon(command));
  const GroupTrajectories& group = parts_.run->store().At(command.group);
  engines_[static_cast<size_t>(group.worker.value())]->Cancel(command.group);
  parts_.run->Abandon(command.group, 0);
  return Status::Ok();
}

Status RuntimeDriver::Execute(const SyncWeights& command) {
  PACE_CHECK(command.version == served_version_, "version ", command.version.step(), " wanted, ",
             served_version_.step(), " there");
  const auto worker = static_cast<size_t>(command.worker.value());
  awaited_syncs_[worker] = command.version;
  return engines_[worker]->Sync(command.version, served_weights_);
}

Status RuntimeDriver::Execute(const TrainBatch& command) {
  batch_ = command;
  step_clock_.Set(StepPart::kTrain, clock_.Now());
  // What engines rescored while the trainer waited for this batch, it waited for.
  step_clock_.BlameRescoring((RescoreTime() - rescored_before_) /
                             static_cast<double>(engines_.size()));
  training_thread_->Post([this, step = command.step, data = parts_.run->BatchOf(command)] {
    Result<MetricList> metrics = parts_.learner->Train(step, data);
    std::optional<WeightSet> weights;
    if (metrics.ok()) weights = parts_.learner->Snapshot();
    mailbox_.Put(Trained{std::move(metrics), std::move(weights)});
  });
  return Status::Ok();
}

Status RuntimeDriver::Execute(const DropGroup& command) {
  parts_.run->Drop(command);
  return Status::Ok();
}

Status RuntimeDriver::Execute(const Evaluate& command) {
  ++num_evaluations_;
  evaluation_thread_->Post([this, version = command.version, weights = newest_weights_] {
    mailbox_.Put(Evaluated{version, parts_.evaluator->Run(weights)});
  });
  return Status::Ok();
}

Status RuntimeDriver::Execute(const Checkpoint& command) {
  checkpoint_ = command.step;
  step_clock_.Set(StepPart::kOther, clock_.Now());
  return Status::Ok();
}

Status RuntimeDriver::Execute(const Stop& /*command*/) {
  stopped_ = true;
  return Status::Ok();
}

Seconds RuntimeDriver::RescoreTime() const {
  Seconds total{0};
  for (const auto& engine : engines_) total += engine->stats().score_time;
  return total;
}

Seconds RuntimeDriver::BusyTime() const {
  Seconds total{0};
  for (const auto& engine : engines_) total += engine->stats().busy_time;
  return total;
}

void RuntimeDriver::Pulse() {
  const auto now = SteadyClock::now();
  if (options_.observer == nullptr || now - last_pulse_ < std::chrono::milliseconds(200)) return;
  int64_t tokens = 0;
  for (const auto& engine : engines_) tokens += engine->stats().num_sampled_tokens;
  const double seconds = std::chrono::duration<double>(now - last_pulse_).count();
  RunPulse pulse;
  pulse.time = clock_.Now();
  pulse.occupancy = parts_.run->journal().occupancy();
  // Engines that rest at the supply bound for a moment have not stopped.
  const double rate = static_cast<double>(tokens - pulse_tokens_) / seconds;
  pulse_rate_ += (rate - pulse_rate_) * (1 - std::exp(-seconds / kRateSeconds));
  pulse.tokens_per_second = pulse_rate_;
  if (!batch_.has_value() && !stopped_) pulse.waiting = parts_.run->coordinator().WhyWaiting();
  options_.observer->OnPulse(pulse);
  last_pulse_ = now;
  pulse_tokens_ = tokens;
}

void RuntimeDriver::WatchForStall(bool something_happened) {
  const auto now = SteadyClock::now();
  if (something_happened) last_event_ = now;
  const std::chrono::duration<double> limit(settings_.runtime.stall_s);
  if (limit.count() <= 0 || now - last_event_ < limit || now - last_stall_note_ < limit) return;
  last_stall_note_ = now;
  if (options_.observer == nullptr) return;
  std::string note = Concat("nothing happened for ", settings_.runtime.stall_s, " s: ");
  note += batch_.has_value() ? "training is under way"
                             : "the trainer waits: " + parts_.run->coordinator().WhyWaiting();
  for (size_t i = 0; i < engines_.size(); ++i) {
    const RolloutStats stats = engines_[i]->stats();
    note += Concat("; engine ", i, " made ", stats.num_passes, " passes");
    if (awaited_syncs_[i].has_value()) note += " and owes a sync";
  }
  options_.observer->OnNote(note);
}

}  // namespace pace
