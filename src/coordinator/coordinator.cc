#include "coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace pace {
namespace {

// The first multiple of `interval` at or after `version`.
PolicyVersion NextSync(PolicyVersion version, int64_t interval) {
  return PolicyVersion((version.step() + interval - 1) / interval * interval);
}

}  // namespace

CoordinatorOptions CoordinatorOptions::Of(const Settings& settings) {
  return {.batch = settings.batch.num_groups,
          .group_size = settings.NumMembers(),
          .num_steps = settings.run.num_steps,
          .sync_interval = settings.supply.sync_interval,
          .checkpoint_every = settings.run.checkpoint_every,
          .evaluate_every = settings.run.evaluate_every,
          .requeue = settings.supply.requeue,
          .max_attempts = settings.supply.max_attempts,
          .greedy_last = settings.train.WantsGreedyResponse(),
          .pool = settings.pool};
}

Coordinator::Coordinator(const CoordinatorOptions& options,
                         std::unique_ptr<AdmissionPolicy> admission,
                         std::unique_ptr<SupplyPolicy> supply, CoordinatorObserver* observer)
    : options_(options),
      admission_(std::move(admission)),
      supply_(std::move(supply)),
      observer_(observer),
      guard_(options.batch, admission_->MaxBudget()),
      pool_(options.pool) {
  PACE_CHECK(options_.batch >= 1 && options_.group_size >= 1 && options_.sync_interval >= 1,
             "batch, group_size and sync_interval count from 1");
}

std::vector<Command> Coordinator::Handle(const Event& event) {
  const Status status = Validate(event);
  PACE_CHECK(status.ok(), status.message());
  Commands out;
  ++num_events_;
  if (stopped_) return out;
  if (!started_) {
    started_ = true;
    if (options_.EvaluatesAt(version_)) {
      evaluating_.push_back(version_);
      out.push_back(Evaluate{version_});
    }
  }
  const bool advance = std::visit([&](const auto& typed) { return On(typed, out); }, event);
  if (advance) Advance(out);
  return out;
}

bool Coordinator::On(const WorkerJoined& event, Commands& out) {
  workers_.Join(event.worker, event.max_groups);
  SyncWorker(event.worker, out);
  return true;
}

bool Coordinator::On(const WorkerLost& event, Commands&) {
  for (const GroupId id : groups_.Running()) {
    if (groups_.Find(id)->worker == event.worker) Lose(id);
  }
  workers_.Lose(event.worker);
  return true;
}

bool Coordinator::On(const ResponseFinished& event, Commands& out) {
  GroupRecord* record = groups_.Find(event.group);
  if (record == nullptr || record->state != GroupState::kRunning) return false;
  record->Finish(event.member, MemberSummary::Of(event.segments, version_, event.prefix_score));
  record->num_bytes += event.num_bytes;
  if (record->num_finished < options_.group_size) return false;

  std::vector<MemberSummary> members = std::move(record->members);
  if (options_.greedy_last && members.size() > 1) members.pop_back();
  const GroupSummary summary = GroupSummary::Of(event.group, version_, members, record->num_bytes);
  workers_.RemoveGroup(record->worker);
  groups_.Move(event.group, GroupState::kPooled);
  throughput_.AddProduced();
  if (observer_ != nullptr) observer_->OnGroupAssembled(summary);
  PooledGroup group(summary, std::move(members), admission_->NeedsMembers());
  for (const Eviction& eviction : pool_.Put(std::move(group), *admission_)) Reject(eviction, out);
  return true;
}

bool Coordinator::On(const GroupFailed& event, Commands&) {
  const GroupRecord* record = groups_.Find(event.group);
  if (record == nullptr || record->state != GroupState::kRunning) return false;
  workers_.RemoveGroup(record->worker);
  Lose(event.group, event.retry);
  return true;
}

bool Coordinator::On(const WorkerSynced& event, Commands& out) {
  workers_.FinishSync(event.worker);
  SyncWorker(event.worker, out);
  return true;
}

bool Coordinator::On(const StepFinished&, Commands& out) {
  const auto num_groups = static_cast<int64_t>(selected_.size());
  for (const GroupId id : selected_) groups_.Move(id, GroupState::kGone);
  selected_.clear();
  num_trained_ += num_groups;
  throughput_.AddConsumed(num_groups);
  throughput_.EndStep();
  training_ = false;
  version_ = version_.Next();
  awaiting_sync_.push_back({NextSync(version_, options_.sync_interval), num_groups});
  num_awaiting_sync_ += num_groups;
  if (version_.step() % options_.sync_interval == 0) {
    published_ = version_;
    SyncWorkers(out);
  }
  if (options_.EvaluatesAt(version_)) {
    evaluating_.push_back(version_);
    out.push_back(Evaluate{version_});
  }
  AbandonRunning(out);
  if (options_.SavesAt(version_)) {
    checkpointing_ = true;
    out.push_back(Checkpoint{version_});
  }
  return true;
}

bool Coordinator::On(const EvaluationFinished& event, Commands&) {
  evaluating_.erase(std::find(evaluating_.begin(), evaluating_.end(), event.version));
  return true;
}

bool Coordinator::On(const CheckpointFinished&, Commands& out) {
  checkpointing_ = false;
  final_checkpoint_done_ = LastStepDone() || stop_requested_;
  SyncWorkers(out);
  return true;
}

bool Coordinator::On(const StopRequested&, Commands&) {
  stop_requested_ = true;
  return true;
}

bool Coordinator::On(const RunResumed&, Commands&) {
  stop_requested_ = false;
  return true;
}

void Coordinator::Advance(Commands& out) {
  ReturnSyncedCredits();
  if (checkpointing_) return;
  if (!stop_requested_ && !LastStepDone()) {
    if (!training_ && !gathering_ && !pool_.empty()) BeginStep();
    if (gathering_) Draw(out);
    StartGroups(out);
  }
  FinishIfDone(out);
}

void Coordinator::SyncWorkers(Commands& out) {
  for (const auto& [worker, record] : workers_.workers()) SyncWorker(worker, out);
}

void Coordinator::SyncWorker(WorkerId worker, Commands& out) {
  const WorkerRecord* record = workers_.Find(worker);
  if (record->in_flight.has_value()) return;
  if (record->served.has_value() && *record->served >= published_) return;
  workers_.SendSync(worker, published_);
  out.push_back(SyncWeights{worker, published_});
}

void Coordinator::ReturnSyncedCredits() {
  const PolicyVersion reached = workers_.OldestServed().value_or(published_);
  while (!awaiting_sync_.empty() && awaiting_sync_.front().needed <= reached) {
    num_awaiting_sync_ -= awaiting_sync_.front().num_groups;
    awaiting_sync_.pop_front();
  }
}

void Coordinator::BeginStep() {
  gathering_ = true;
  num_offered_ = 0;
  guard_.BeginStep(version_);
  const StepPlan plan =
      admission_->BeginStep(version_, {.occupancy = pool_.occupancy(), .batch = options_.batch});
  pool_.OnStepBegan();
  if (observer_ != nullptr) observer_->OnStepBegan(plan, served());
}

void Coordinator::Draw(Commands& out) {
  while (groups_.num_selected() < options_.batch && !pool_.empty()) {
    const PooledGroup group = pool_.Draw(*admission_);
    const Decision decision =
        guard_.Apply(group.summary, admission_->Judge(group.summary), served());
    admission_->Observe(group.summary, decision);
    ++num_offered_;
    if (observer_ != nullptr) {
      observer_->OnGroupDrawn(group.summary, decision, served());
    }
    if (decision.verdict == Verdict::kAdmit) {
      groups_.Move(group.summary.id, GroupState::kSelected);
      selected_.push_back(group.summary.id);
    } else {
      Reject({group.summary.id, decision.reason}, out);
    }
  }
  if (groups_.num_selected() == options_.batch) SendBatch(out);
}

void Coordinator::Reject(const Eviction& eviction, Commands& out) {
  ReturnPrompt(*groups_.Find(eviction.group), /*rejected=*/true);
  groups_.Move(eviction.group, GroupState::kGone);
  ++num_rejected_;
  out.push_back(DropGroup{eviction.group, eviction.reason});
}

void Coordinator::SendBatch(Commands& out) {
  gathering_ = false;
  training_ = true;
  std::sort(selected_.begin(), selected_.end());
  out.push_back(TrainBatch{version_, selected_});
  AbandonRunning(out);
}

void Coordinator::AbandonRunning(Commands& out) {
  if (!supply_->MayAbandon()) return;
  for (const GroupId id : groups_.Running()) {
    const GroupRecord& record = *groups_.Find(id);
    const Abandon abandon = supply_->ShouldAbandon(
        {.id = id, .dispatched = record.dispatched, .num_finished = record.num_finished},
        supply_view());
    if (abandon == Abandon::kNo) continue;
    const bool keep_prefix = abandon == Abandon::kKeepPrefix;
    workers_.RemoveGroup(record.worker);
    if (keep_prefix) {
      // The same try goes on, so it is not counted again.
      prompts_.Resume({record.prompt, record.attempt});
    } else {
      ReturnPrompt(record, /*rejected=*/false);
    }
    groups_.Move(id, GroupState::kGone);
    ++num_lost_;
    out.push_back(AbandonGroup{id, keep_prefix});
  }
}

void Coordinator::StartGroups(Commands& out) {
  int64_t num_to_start = supply_->NumToStart(supply_view());
  // Whatever the policy answers: a step that nothing can complete gets what it
  // lacks.
  if (num_to_start <= 0 && NothingOutstanding() && pool_.empty()) {
    num_to_start = options_.batch - groups_.num_selected();
  }
  for (; num_to_start > 0; --num_to_start) {
    const auto worker = workers_.LeastLoaded();
    if (!worker.has_value()) return;
    const Dispatch dispatch = prompts_.Next();
    const GroupId id = groups_.Start(*worker, dispatch.prompt, dispatch.attempt,
                                     *workers_.Find(*worker)->promised(), options_.group_size);
    workers_.AddGroup(*worker);
    out.push_back(StartGroup{id, *worker, dispatch.prompt, dispatch.attempt});
  }
}

void Coordinator::FinishIfDone(Commands& out) {
  if (!LastStepDone() && !stop_requested_) return;
  if (training_ || checkpointing_) return;
  const bool saves = options_.SavesAtEnd() && !final_checkpoint_done_;
  // A stop is saved at once; an evaluation under way is begun again by the run that goes on.
  if (!evaluating_.empty() && !(saves && stop_requested_)) return;
  if (saves) {
    checkpointing_ = true;
    out.push_back(Checkpoint{version_});
    return;
  }
  stopped_ = true;
  out.push_back(Stop{});
}

void Coordinator::Lose(GroupId group, bool retry) {
  if (retry) ReturnPrompt(*groups_.Find(group), /*rejected=*/false);
  groups_.Move(group, GroupState::kGone);
  ++num_lost_;
}

int64_t Coordinator::AttemptOf(GroupId group) const {
  const GroupRecord* const record = groups_.Find(group);
  return record == nullptr ? 1 : record->attempt;
}

void Coordinator::ReturnPrompt(const GroupRecord& record, bool rejected) {
  const Requeue wanted = rejected ? Requeue::kRejected : Requeue::kLost;
  if (options_.requeue != wanted && options_.requeue != Requeue::kAll) return;
  if (record.attempt >= options_.max_attempts) return;
  prompts_.Return({record.prompt, record.attempt + 1});
}

bool Coordinator::NothingOutstanding() const {
  return !training_ && !checkpointing_ && groups_.num_running() == 0 && workers_.num_syncing() == 0;
}

SupplyView Coordinator::supply_view() const {
  return {.num_running = groups_.num_running(),
          .num_pooled = groups_.num_pooled(),
          .num_selected = groups_.num_selected(),
          .num_awaiting_sync = num_awaiting_sync_,
          .num_started = groups_.next_id().value(),
          .num_trained = num_trained_,
          .num_rejected = num_rejected_,
          .num_lost = num_lost_,
          .trainer = version_,
          .published = published_,
          .oldest_promised = workers_.OldestPromised(),
          .oldest_dispatch = groups_.OldestDispatch(),
          .gathering = gathering_,
          .training = training_};
}

}  // namespace pace
