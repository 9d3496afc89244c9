// What engines, trainer and tools do, and how the coordinator is told.
#include <algorithm>
#include <utility>

#include "core/check.h"
#include "sim/driver.h"

namespace pace {
namespace {

// Losses within one step, per engine, after which a run is called hopeless.
constexpr int64_t kMaxLossesPerEngine = 1000;

}  // namespace

void Driver::ActEngine(size_t index) {
  const EngineReport report = EngineOf(index).Act();
  Touch(index);
  Prefetch(LookAhead::kActive);
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
      return JoinEngine(timer.engine);
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
                     .num_step_tokens = num_tokens - step_tokens_,
                     .produced = coordinator_.throughput().produced(),
                     .consumed = coordinator_.throughput().consumed()});
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
  Handle(StepFinished{step});
  finishing_step_ = false;
  if (options_.progress) options_.progress(step.step() + 1, settings_.run.num_steps);
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

}  // namespace pace
