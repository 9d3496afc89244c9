#include "runtime/runtime.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "config/settings.h"
#include "core/clock.h"
#include "execution/engine_maker.h"
#include "execution/run_driver.h"
#include "execution/tool_threads.h"
#include "model/devices.h"
#include "rollout/engine.h"
#include "runtime/affinity.h"
#include "runtime/mailbox.h"
#include "runtime/pending_rewards.h"
#include "runtime/remote_evaluation.h"
#include "runtime/server_fleet.h"
#include "runtime/worker_slots.h"

namespace pace {
namespace {

// RuntimeDriver: carries out the coordinator's commands on real threads.
//
// Everything that happens arrives in one mailbox and is handled by one thread, so
// nothing but the mailbox is shared. Thread-safety: none.
class RuntimeDriver final : public RunDriver {
 public:
  // All references outlive the driver.
  RuntimeDriver(const Settings& settings, const Policy& policy, const RunSetup& setup,
                RunClock& clock, std::unique_ptr<TrainingRun> run);

  Result<RunResult> Run();

 private:
  // A worker has events.
  struct WorkerSpoke {
    size_t worker = 0;
  };
  struct Trained {
    Result<TrainedStep> step;
  };
  struct Evaluated {
    PolicyVersion version;
    Result<std::vector<BenchmarkScore>> scores;
    Status elsewhere = {};  // why servers did not do it
  };
  struct Saved {
    Result<std::string> folder;
  };
  // The tool's reply to a paused response.
  struct ToolReplied {
    size_t worker = 0;
    MemberId id{};
    PartialResponse response;
    Seconds made{0};
    Result<ToolReply> reply;
  };
  using Message = std::variant<WorkerSpoke, Trained, Evaluated, Saved, ToolReplied, JudgedResponse>;

  Status Begin();
  Status Resume();
  // Engines in this process, or a fleet of servers that begin to join.
  Status MakeWorkers();
  Status JoinEngines();
  // Servers that joined, or are gone.
  Status OnReady(size_t worker);
  Status OnGone(size_t worker, const WorkerGone& gone);
  Status OnDeviceFailed(size_t worker, const Status& error);
  Status AskAbsent();
  void NoteLocalEvaluation(PolicyVersion version, const std::string& why);
  Status Loop();

  Status On(WorkerSpoke& message);
  Status On(Trained& message);
  Status On(Evaluated& message);
  Status On(Saved& message);
  Status On(ToolReplied& message);
  Status On(JudgedResponse& message);
  // Handles the events of the worker so far.
  Status HearWorker(size_t worker);
  Status OnWorker(size_t worker, RolloutEvent& event);
  void OnRested(size_t worker, MemberId id, PartialResponse response);

  void Submit(size_t worker, GroupRequest request) override;
  GroupInFlight Cancel(size_t worker, GroupId group, bool keep) override;
  Status Sync(size_t worker, const PublishedWeights& weights) override;
  Status AskReward(RewardRequest request, FinishedResponse response) override;
  void StartTraining() override;
  Status StartEvaluation(PolicyVersion version) override;
  void StartCheckpoint() override;
  Status Prepare(PublishedWeights& published) override;

  // A run of a checkpoint continues: with the engines that it had, or with others, which take over
  // what is unfinished.
  Status ContinueOnEngines(RunCheckpoint& run);
  Status MoveToOthers(RunCheckpoint& run);
  size_t FirstFreeId(const RunCheckpoint& run) const;

  Status SaveIfReady();
  Status Save();
  Status FinishSaves();
  void Pulse();
  void WatchForStall(bool something_happened);
  int64_t MaxGroups() const;

  RunClock& run_clock_;    // clock_, to be set
  int64_t num_saves_ = 0;  // under way
  Seconds rescored_before_{0};
  Seconds busy_before_{0};
  int64_t sampled_before_ = 0;

  std::chrono::steady_clock::time_point last_event_, last_pulse_, last_stall_note_;
  int64_t pulse_tokens_ = 0;
  double pulse_rate_ = 0;  // tokens per second

  Mailbox<Message> mailbox_;
  PendingRewards judging_{[this](JudgedResponse judged) { mailbox_.Put(std::move(judged)); }};
  // The last members: their threads write into the mailbox.
  WorkerSlots slots_;
  std::unique_ptr<ServerFleet> fleet_;  // null with engines in this process
  const std::unique_ptr<TaskThread> training_thread_;
  TaskThread evaluation_thread_;
  RemoteEvaluations evaluations_{slots_};  // on servers; gone before the thread that waits for them
  TaskThread saving_thread_;
  std::unique_ptr<ToolThreads> tool_threads_;  // null without tools
};

using SteadyClock = std::chrono::steady_clock;

// How often the driver looks up when nothing happens.
constexpr std::chrono::milliseconds kLookUp(100);
// The displayed speed is a mean over about this time.
constexpr double kRateSeconds = 5;

std::unique_ptr<TaskThread> StartTrainingThread(const Settings& settings) {
  const ScopedAffinity cores(settings.runtime.pin_threads,
                             settings.engine.count * settings.engine.threads,
                             settings.train.num_threads);
  return std::make_unique<TaskThread>();
}

RuntimeDriver::RuntimeDriver(const Settings& settings, const Policy& policy, const RunSetup& setup,
                             RunClock& clock, std::unique_ptr<TrainingRun> run)
    : RunDriver(settings, policy, setup, clock, std::move(run)),
      run_clock_(clock),
      training_thread_(StartTrainingThread(settings)) {
  run_->journal().SetNumGpus(settings.policy.device == PolicyDevice::kCuda ? 1 : 0);
  if (run_->executor() != nullptr) {
    tool_threads_ = std::make_unique<ToolThreads>(run_->executor(), settings.tools.max_programs);
  }
}

Status RuntimeDriver::MakeWorkers() {
  if (settings_.engine.IsElsewhere()) {
    PACE_ASSIGN_OR_RETURN(fleet_, ServerFleet::Create(settings_, policy_, setup_));
    return Status::Ok();
  }
  for (int64_t i = 0; i < settings_.engine.count; ++i) {
    const int64_t threads = settings_.engine.threads;
    const ScopedAffinity cores(settings_.runtime.pin_threads, i * threads, threads);
    EngineUse use{.score_moment = ScoreMoment::kEnd};
    if (setup_.wrap_decoder) use.wrap = std::bind_front(setup_.wrap_decoder, i);
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> core, MakeEngine(settings_, policy_, use));
    const size_t index = slots_.size();
    auto engine = std::make_unique<RolloutEngine>(
        std::move(core), [this, index] { mailbox_.Put(WorkerSpoke{index}); });
    slots_.Add({.worker = std::move(engine), .number = static_cast<size_t>(i)});
  }
  return Status::Ok();
}

Status RuntimeDriver::Prepare(PublishedWeights& published) {
  if (fleet_ != nullptr) return fleet_->Publish(published);
  // Any engine lays weights out for all.
  for (const WorkerSlot& slot : slots_) {
    const auto* const engine = dynamic_cast<const RolloutEngine*>(slot.worker.get());
    if (engine == nullptr) continue;
    PACE_ASSIGN_OR_RETURN(published.prepared, engine->Prepare(published.weights));
    return Status::Ok();
  }
  return Unavailable("no engine is left");
}

Status RuntimeDriver::JoinEngines() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].worker == nullptr) continue;
    slots_[i].joined = true;
    PACE_RETURN_IF_ERROR(Handle(WorkerJoined{WorkerId(static_cast<int64_t>(i)), MaxGroups()}));
  }
  return Status::Ok();
}

// Servers come and go.

Status RuntimeDriver::AskAbsent() {
  if (fleet_ == nullptr) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(const std::vector<size_t> absent, fleet_->Due(SteadyClock::now()));
  for (const size_t server : absent) {
    const size_t index = slots_.size();
    slots_.Add({.worker = fleet_->Call(server, [this, index] { mailbox_.Put(WorkerSpoke{index}); }),
                .number = server});
  }
  return Status::Ok();
}

Status RuntimeDriver::OnReady(size_t worker) {
  WorkerSlot& slot = slots_[worker];
  slot.joined = true;
  fleet_->OnReady(slot.number);
  return Handle(WorkerJoined{WorkerId(static_cast<int64_t>(worker)), MaxGroups()});
}

Status RuntimeDriver::OnGone(size_t worker, const WorkerGone& gone) {
  const bool joined = slots_.Lose(worker);
  evaluations_.Lose(worker);
  PACE_RETURN_IF_ERROR(fleet_->OnGone(slots_[worker].number, gone));
  if (!joined) return Status::Ok();
  return LoseWorker(WorkerId(static_cast<int64_t>(worker)), {});
}

// The engine may fail again, so it is lost; the others take over what it had begun.
Status RuntimeDriver::OnDeviceFailed(size_t worker, const Status& error) {
  const double num_others = slots_.count() - 1;
  if (num_others == 0) return error;
  Note(Concat("engine ", slots_[worker].number, " failed and is lost; ", num_others,
              " left: ", error.message()));
  std::vector<GroupInFlight> unfinished;
  for (GroupRequest& request : slots_[worker].worker->Pause()) {
    unfinished.push_back(InFlightOf(std::move(request)));
  }
  slots_.Lose(worker);
  return LoseWorker(WorkerId(static_cast<int64_t>(worker)), std::move(unfinished));
}

int64_t RuntimeDriver::MaxGroups() const {
  // An engine queues what it cannot run yet: the supply policy is the bound.
  return std::max<int64_t>(1, settings_.supply.MaxGroups(settings_.batch.num_groups));
}

Result<RunResult> RuntimeDriver::Run() {
  PACE_RETURN_IF_ERROR(setup_.resume ? Resume() : Begin());
  PACE_RETURN_IF_ERROR(Loop());
  RunResult result = TakeResult();
  PACE_RETURN_IF_ERROR(FinishSaves());
  // A step that was under way is not part of the result.
  const bool as_served = newest_.residence() == Residence::kHost || batch_.has_value();
  PACE_ASSIGN_OR_RETURN(
      result.weights, as_served ? ToHost(policy_.config, newest_) : run_->trainer().HostSnapshot());
  return result;
}

Status RuntimeDriver::Begin() {
  PACE_RETURN_IF_ERROR(MakeWorkers());
  PACE_RETURN_IF_ERROR(ServeFirst());
  return JoinEngines();
}

Status RuntimeDriver::Loop() {
  last_event_ = last_pulse_ = last_stall_note_ = SteadyClock::now();
  while (!stopped_) {
    std::vector<Message> messages = mailbox_.Take(SteadyClock::now() + kLookUp);
    for (Message& message : messages) {
      PACE_RETURN_IF_ERROR(std::visit([this](auto& typed) { return On(typed); }, message));
    }
    PACE_RETURN_IF_ERROR(run_->journal().status());
    PACE_RETURN_IF_ERROR(AskAbsent());
    evaluations_.Assign(published_.version);
    PACE_RETURN_IF_ERROR(StopIfAsked(checkpoint_.has_value() && !setup_.checkpoints.empty()));
    PACE_RETURN_IF_ERROR(SaveIfReady());
    WatchForStall(!messages.empty());
    Pulse();
  }
  return Status::Ok();
}

Status RuntimeDriver::On(WorkerSpoke& message) {
  return HearWorker(message.worker);
}

Status RuntimeDriver::HearWorker(size_t worker) {
  if (slots_[worker].worker == nullptr) return Status::Ok();
  for (RolloutEvent& event : slots_[worker].worker->Wait(SteadyClock::now())) {
    // Lost by an event before this one.
    if (slots_[worker].worker == nullptr) break;
    PACE_RETURN_IF_ERROR(OnWorker(worker, event));
  }
  return Status::Ok();
}

Status RuntimeDriver::OnWorker(size_t worker, RolloutEvent& event) {
  if (evaluations_.Take(event)) return Status::Ok();
  if (auto* finished = std::get_if<FinishedResponse>(&event)) {
    if (fleet_ != nullptr) fleet_->OnResponse(slots_[worker].number);
    return Finish(std::move(*finished));
  }
  if (auto* rested = std::get_if<ResponsePaused>(&event)) {
    OnRested(worker, rested->id, std::move(rested->response));
    return Status::Ok();
  }
  if (const auto* synced = std::get_if<WeightsSynced>(&event)) {
    // The coordinator knows of the first weights of a resumed engine.
    std::optional<PolicyVersion>& awaited = slots_[worker].awaited_sync;
    if (awaited != synced->version) return Status::Ok();
    awaited.reset();
    return Handle(WorkerSynced{WorkerId(static_cast<int64_t>(worker)), synced->version});
  }
  if (const auto* refused = std::get_if<GroupRefused>(&event)) {
    if (fleet_ == nullptr) return refused->error.At(Concat("group ", refused->group.value()));
    PACE_RETURN_IF_ERROR(fleet_->OnRefused(refused->error));
    run_->Abandon({refused->group, /*keep_prefix=*/false}, {});
    return Handle(GroupFailed{.group = refused->group, .retry = false});
  }
  if (std::get_if<WorkerReady>(&event) != nullptr) return OnReady(worker);
  if (const auto* gone = std::get_if<WorkerGone>(&event)) return OnGone(worker, *gone);
  if (const auto* failed = std::get_if<DeviceFailed>(&event)) {
    return OnDeviceFailed(worker, failed->error);
  }
  if (const auto* cancelled = std::get_if<GroupCancelled>(&event)) {
    run_->CountCancelled(cancelled->request.resumed);
  }
  return Status::Ok();
}

void RuntimeDriver::OnRested(size_t worker, MemberId id, PartialResponse response) {
  if (run_->store().Find(id.group) == nullptr) return;  // abandoned meanwhile
  const std::optional<ToolRequest> call = run_->CallOf(id, response);
  if (!call.has_value()) return slots_[worker].worker->FinishPaused(id);
  tool_threads_->Ask(*call, [this, worker, id, response = std::move(response),
                             made = clock_.Now()](Result<ToolReply> reply) {
    mailbox_.Put(ToolReplied{worker, id, response, made, std::move(reply)});
  });
}

Status RuntimeDriver::On(ToolReplied& message) {
  if (!message.reply.ok()) return message.reply.status();
  if (run_->store().Find(message.id.group) == nullptr) return Status::Ok();
  // Not PACE_ASSIGN_OR_RETURN: g++ 12 takes the vector of a moved optional for uninitialized.
  auto tokens =
      TakeReply(message.id, message.response, *message.reply, clock_.Now() - message.made);
  PACE_RETURN_IF_ERROR(tokens.status());
  if (run_->store().Find(message.id.group) == nullptr) return Status::Ok();
  RolloutWorker* const worker = slots_[message.worker].worker.get();
  if (worker == nullptr) return Status::Ok();
  if (tokens->has_value()) {
    worker->Continue(message.id, **std::move(tokens));
  } else {
    worker->FinishPaused(message.id);
  }
  return Status::Ok();
}

// While a checkpoint is due it waits for the reply, so that no response is left between engine and
// store when the run is saved.
Status RuntimeDriver::AskReward(RewardRequest request, FinishedResponse response) {
  if (checkpoint_.has_value()) {
    return RunDriver::AskReward(std::move(request), std::move(response));
  }
  judging_.Ask(*run_->rewards(), std::move(request), std::move(response));
  return Status::Ok();
}

Status RuntimeDriver::On(JudgedResponse& message) {
  judging_.Settle();
  return FinishJudged(std::move(message.response), message.request, message.reply);
}

Status RuntimeDriver::On(Trained& message) {
  if (!message.step.ok()) return message.step.status();
  step_clock_.Set(StepPart::kSync, clock_.Now());
  const Seconds rescored = slots_.ScoreTime();
  const double num_engines = slots_.count();
  StepTimes times = step_clock_.EndStep(clock_.Now(), (rescored - rescored_before_) / num_engines);
  rescored_before_ = rescored;
  const Seconds busy = slots_.BusyTime();
  times.engines_busy = (busy - busy_before_) / num_engines;
  busy_before_ = busy;
  slots_.EndStep(times.step, message.step->metrics);
  const int64_t num_sampled = slots_.SampledTokens();
  const int64_t num_new = num_sampled - std::exchange(sampled_before_, num_sampled);
  PACE_RETURN_IF_ERROR(Handle(EndStep(std::move(message.step).value(), times, num_new)));
  if (batch_.has_value()) return Status::Ok();
  const StepPart part = checkpoint_.has_value() ? StepPart::kOther : StepPart::kWaitData;
  step_clock_.Set(part, clock_.Now());
  return Status::Ok();
}

Status RuntimeDriver::On(Evaluated& message) {
  if (!message.scores.ok()) return message.scores.status();
  if (!message.elsewhere.ok()) NoteLocalEvaluation(message.version, message.elsewhere.message());
  evaluations_.End(message.version);
  EndEvaluation(message.version, std::move(message.scores).value());
  return Handle(EvaluationFinished{message.version});
}

void RuntimeDriver::Submit(size_t worker, GroupRequest request) {
  std::vector<std::pair<MemberId, PartialResponse>> paused;
  for (size_t i = 0; i < request.resumed.size(); ++i) {
    if (!request.resumed[i].paused.has_value()) continue;
    const int64_t member = request.member(static_cast<int64_t>(i));
    paused.emplace_back(MemberId{request.group, member}, request.resumed[i]);
  }
  slots_[worker].worker->Submit(std::move(request));
  // A call that was under way is made again.
  for (auto& [id, response] : paused) OnRested(worker, id, std::move(response));
}

GroupInFlight RuntimeDriver::Cancel(size_t worker, GroupId group, bool keep) {
  if (keep) {
    // The next group of the prompt may start at once, so the engine is waited for.
    std::optional<GroupRequest> taken = slots_[worker].worker->Take(group);
    return taken.has_value() ? InFlightOf(*std::move(taken)) : GroupInFlight{};
  }
  slots_[worker].worker->Cancel(group);
  return {};
}

Status RuntimeDriver::Sync(size_t worker, const PublishedWeights& weights) {
  slots_[worker].awaited_sync = weights.version;
  slots_[worker].given = weights.version;
  const Status status = slots_[worker].worker->Sync(weights);
  // A server that is gone says so itself.
  return fleet_ != nullptr && status.code() == StatusCode::kUnavailable ? Status::Ok() : status;
}

void RuntimeDriver::StartTraining() {
  step_clock_.Set(StepPart::kTrain, clock_.Now());
  // Rescoring during this wait counts as visible: the trainer was blocked on it.
  step_clock_.BlameRescoring((slots_.ScoreTime() - rescored_before_) / slots_.count());
  training_thread_->Post([this, step = batch_->step, data = run_->BatchOf(*batch_)] {
    mailbox_.Put(Trained{Train(step, data)});
  });
}

Status RuntimeDriver::StartEvaluation(PolicyVersion version) {
  std::shared_ptr<RemoteEvaluation> remote;
  if (fleet_ != nullptr && run_->executor() != nullptr) {
    NoteLocalEvaluation(version, "tools are called here");
  } else if (fleet_ != nullptr && published_.version != version) {
    NoteLocalEvaluation(version, Concat("servers get version ", published_.version));
  } else if (fleet_ != nullptr) {
    remote = evaluations_.Start(version);
  }
  evaluation_thread_.Post([this, version, remote, weights = newest_] {
    if (remote == nullptr) {
      mailbox_.Put(Evaluated{version, run_->evaluator().Run(weights)});
      return;
    }
    Result<std::vector<BenchmarkScore>> scores = run_->evaluator().RunOn(*remote);
    const Status elsewhere = scores.status();
    if (remote->abandoned()) return;
    if (!elsewhere.ok()) scores = run_->evaluator().Run(weights);
    mailbox_.Put(Evaluated{version, std::move(scores), elsewhere});
  });
  return Status::Ok();
}

void RuntimeDriver::NoteLocalEvaluation(PolicyVersion version, const std::string& why) {
  Note(Concat("version ", version, " is evaluated in this process: ", why));
}

void RuntimeDriver::StartCheckpoint() {
  step_clock_.Set(StepPart::kOther, clock_.Now());
}

void RuntimeDriver::Pulse() {
  const auto now = SteadyClock::now();
  if (setup_.observer == nullptr || now - last_pulse_ < std::chrono::milliseconds(200)) return;
  const int64_t tokens = slots_.SampledTokens();
  const double seconds = std::chrono::duration<double>(now - last_pulse_).count();
  RunPulse pulse;
  pulse.time = clock_.Now();
  pulse.occupancy = run_->coordinator().pool().occupancy();
  // Engines that rest at the supply bound for a moment have not stopped.
  const double rate = static_cast<double>(tokens - pulse_tokens_) / seconds;
  pulse_rate_ += (rate - pulse_rate_) * (1 - std::exp(-seconds / kRateSeconds));
  pulse.tokens_per_second = pulse_rate_;
  if (!batch_.has_value() && !stopped_) pulse.waiting = run_->coordinator().WhyWaiting();
  setup_.observer->OnPulse(pulse);
  last_pulse_ = now;
  pulse_tokens_ = tokens;
}

void RuntimeDriver::WatchForStall(bool something_happened) {
  const auto now = SteadyClock::now();
  if (something_happened) last_event_ = now;
  const std::chrono::duration<double> limit(settings_.runtime.stall_s);
  if (limit.count() <= 0 || now - last_event_ < limit || now - last_stall_note_ < limit) return;
  last_stall_note_ = now;
  if (setup_.observer == nullptr) return;
  std::string note = Concat("nothing happened for ", settings_.runtime.stall_s, " s: ");
  note += batch_.has_value() ? "training is under way"
                             : "the trainer waits: " + run_->coordinator().WhyWaiting();
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].worker == nullptr) continue;
    const RolloutStats stats = slots_[i].worker->stats();
    note += Concat("; engine ", i, " sampled ", stats.num_sampled_tokens, " tokens");
    if (!slots_[i].joined) note += " and has not joined";
    if (slots_[i].awaited_sync.has_value()) note += " and owes a sync";
  }
  if (fleet_ != nullptr) note += fleet_->WhoIsAbsent();
  Note(note);
}

// How a run is saved and continues.

Status RuntimeDriver::SaveIfReady() {
  if (!checkpoint_.has_value() || batch_.has_value() || judging_.count() > 0) return Status::Ok();
  for (const WorkerSlot& slot : slots_) {
    if (slot.awaited_sync.has_value()) return Status::Ok();
  }
  PACE_RETURN_IF_ERROR(Save());
  const PolicyVersion step = *checkpoint_;
  checkpoint_.reset();
  // After the last step the run ends anyway, with its evaluation.
  if (stop_after_save_ && run_->coordinator().version().step() < settings_.run.num_steps) {
    stopped_ = true;
    return Status::Ok();
  }
  step_clock_.Set(StepPart::kWaitData, clock_.Now());
  return Handle(CheckpointFinished{step});
}

Status RuntimeDriver::Save() {
  std::vector<GroupInFlight> in_flight;
  for (size_t worker = 0; worker < slots_.size(); ++worker) {
    if (!slots_[worker].joined) continue;
    for (GroupRequest& request : slots_[worker].worker->Pause()) {
      in_flight.push_back(InFlightOf(std::move(request)));
    }
    // What finished before the pause comes in first.
    PACE_RETURN_IF_ERROR(HearWorker(worker));
  }
  if (!setup_.checkpoints.empty()) {
    PACE_ASSIGN_OR_RETURN(RunCheckpoint run, Describe());
    run.in_flight = std::move(in_flight);
    PACE_ASSIGN_OR_RETURN(SavedTrainer trainer, run_->CopyTrainer());
    // Written while the run continues; a kill before its end leaves the one before.
    ++num_saves_;
    saving_thread_.Post(
        [this, run = std::move(run), saved = std::move(trainer), served = published_.weights] {
          mailbox_.Put(Saved{Write(run, saved, served, settings_.checkpoint.keep)});
        });
  }
  for (const WorkerSlot& slot : slots_) {
    if (slot.joined) slot.worker->Resume();
  }
  return Status::Ok();
}

Status RuntimeDriver::On(Saved& message) {
  --num_saves_;
  if (!message.folder.ok()) return message.folder.status();
  if (setup_.observer != nullptr) setup_.observer->OnCheckpoint(*message.folder);
  return Status::Ok();
}

Status RuntimeDriver::FinishSaves() {
  while (num_saves_ > 0) {
    for (Message& message : mailbox_.Take(SteadyClock::now() + std::chrono::seconds(1))) {
      if (auto* saved = std::get_if<Saved>(&message)) PACE_RETURN_IF_ERROR(On(*saved));
    }
  }
  return Status::Ok();
}

Status RuntimeDriver::Resume() {
  PACE_ASSIGN_OR_RETURN(ResumedRun resumed, Restore());
  RunCheckpoint& run = resumed.checkpoint;
  run_clock_.SetBase(run.time);
  step_clock_.Set(StepPart::kOther, clock_.Now());
  const bool same_engines =
      !settings_.engine.IsElsewhere() && CheckWorkers(run, settings_.engine.count).ok();
  if (!same_engines) slots_.StartAt(FirstFreeId(run));
  PACE_RETURN_IF_ERROR(MakeWorkers());
  PACE_ASSIGN_OR_RETURN(PublishedWeights published, Publish(run.served, resumed.served));
  Serve(std::move(published));
  if (same_engines) {
    PACE_RETURN_IF_ERROR(ContinueOnEngines(run).At(resumed.folder));
  } else {
    PACE_RETURN_IF_ERROR(MoveToOthers(run));
  }
  run.in_flight.clear();
  for (const Command& command : run_->coordinator().Owed()) {
    if (const auto* evaluate = std::get_if<Evaluate>(&command)) {
      PACE_RETURN_IF_ERROR(StartEvaluation(evaluate->version));
    }
  }
  if (run.coordinator.stop_requested) PACE_RETURN_IF_ERROR(Handle(RunResumed{}));
  return Handle(CheckpointFinished{run.step});
}

Status RuntimeDriver::ContinueOnEngines(RunCheckpoint& run) {
  for (WorkerSlot& slot : slots_) {
    slot.joined = true;
    PACE_RETURN_IF_ERROR(slot.worker->Sync(published_));
  }
  for (GroupInFlight& group : run.in_flight) {
    PACE_ASSIGN_OR_RETURN(ResumedGroup continued, ResumeInFlight(std::move(group)));
    const auto worker = static_cast<size_t>(continued.worker.value());
    Submit(worker, std::move(continued.request));
  }
  return Status::Ok();
}

// The ids of workers that are gone are not used again.
size_t RuntimeDriver::FirstFreeId(const RunCheckpoint& run) const {
  int64_t newest = -1;
  for (const auto& [id, worker] : run.coordinator.workers) newest = std::max(newest, id.value());
  for (const auto& [id, group] : run_->store().groups()) {
    newest = std::max(newest, group.worker.value());
  }
  return static_cast<size_t>(newest + 1);
}

Status RuntimeDriver::MoveToOthers(RunCheckpoint& run) {
  std::map<WorkerId, std::vector<GroupInFlight>> unfinished;
  for (GroupInFlight& group : run.in_flight) {
    unfinished[run_->store().At(group.group).worker].push_back(std::move(group));
  }
  for (const auto& [worker, record] : run.coordinator.workers) {
    PACE_RETURN_IF_ERROR(LoseWorker(worker, std::move(unfinished[worker])));
  }
  return JoinEngines();
}

}  // namespace

Result<RunResult> RunTraining(const Settings& settings, const Policy& policy,
                              const RunSetup& setup) {
  PACE_RETURN_IF_ERROR(settings.Validate());
  RunClock clock;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<TrainingRun> run,
                        TrainingRun::Create(settings, policy, clock, setup));
  RuntimeDriver driver(settings, policy, setup, clock, std::move(run));
  return driver.Run();
}

}  // namespace pace
