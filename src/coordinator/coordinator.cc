#include "coordinator/coordinator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace pace {
namespace {

// The first multiple of `interval` at or after `version`.
PolicyVersion NextSync(PolicyVersion version, int64_t interval) {
  return PolicyVersion((version.step() + interval - 1) / interval * interval);
}

}  // namespace

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
  if (advance && !failed()) Advance(out);
  if (failed()) out.clear();
  return out;
}

Status Coordinator::failure() const {
  return failed() ? *admission_->failure() : Status::Ok();
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
  supply_->OnGroupFinished(supply_view());
  if (observer_ != nullptr) observer_->OnGroupAssembled(summary);
  PooledGroup group(summary, std::move(members), admission_->NeedsMembers());
  const std::vector<Eviction> evictions = pool_.Put(std::move(group), *admission_);
  if (failed()) return false;
  for (const Eviction& eviction : evictions) {
    if (observer_ != nullptr) observer_->OnGroupEvicted(eviction.group);
    Reject(eviction, out);
  }
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

bool Coordinator::On(const StepFinished& event, Commands& out) {
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
  supply_->OnTrainerReady(
      supply_view(),
      {.seconds = event.seconds, .waited = event.waited, .num_tokens = event.num_tokens});
  supply_limited_ = false;
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
    if (!training_ && !gathering_ && !pool_.empty()) BeginStep(out);
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

void Coordinator::BeginStep(Commands& out) {
  gathering_ = true;
  num_offered_ = 0;
  guard_.BeginStep(version_);
  std::vector<GroupSummary> groups;
  if (admission_->RanksPool()) groups = pool_.Summaries();
  const StepPlan plan = admission_->BeginStep(version_, {.occupancy = pool_.occupancy(),
                                                         .batch = options_.batch,
                                                         .groups = groups,
                                                         .served = served()});
  if (failed()) return;
  pool_.OnStepBegan();
  if (observer_ != nullptr) observer_->OnStepBegan(plan, served(), pool_);
  for (const PooledGroup& group : pool_.TakeAll(admission_->Chosen())) Offer(group.summary, out);
}

void Coordinator::Draw(Commands& out) {
  while (groups_.num_selected() < options_.batch && !pool_.empty() && !failed()) {
    const PooledGroup group = pool_.Draw(*admission_);
    Offer(group.summary, out);
  }
  if (failed()) return;
  if (groups_.num_selected() == options_.batch) SendBatch(out);
}

void Coordinator::Offer(const GroupSummary& group, Commands& out) {
  const Decision decision = guard_.Apply(group, admission_->Judge(group), served());
  if (failed()) return;
  admission_->Observe(group, decision);
  ++num_offered_;
  if (observer_ != nullptr) observer_->OnGroupDrawn(group, decision, served());
  if (decision.verdict == Verdict::kAdmit) {
    groups_.Move(group.id, GroupState::kSelected);
    selected_.push_back(group.id);
  } else {
    Reject({group.id, decision.reason}, out);
  }
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
      // The attempt continues, so it is not counted again.
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
  // Whatever the policy decides: a step that nothing else can complete gets the groups it lacks.
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
  supply_limited_ = supply_limited_ || workers_.LeastLoaded().has_value();
}

void Coordinator::FinishIfDone(Commands& out) {
  if (!LastStepDone() && !stop_requested_) return;
  if (training_ || checkpointing_) return;
  const bool saves = options_.SavesAtEnd() && !final_checkpoint_done_;
  // A stop saves at once; the resumed run repeats an evaluation that is in flight.
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

std::optional<double> Coordinator::supply_limit() const {
  const double limit = supply_->Save().limit;
  return limit > 0 ? std::optional(limit) : std::nullopt;
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
          .training = training_,
          .supply_limited = supply_limited_};
}

// --- what may be asked without a change: whether an event fits, invariants, reasons to wait ---

Status Coordinator::Validate(const Event& event) const {
  if (const auto* joined = std::get_if<WorkerJoined>(&event)) {
    if (workers_.Find(joined->worker) != nullptr) {
      return InvalidArgument("worker = ", joined->worker, ": has joined already");
    }
    if (joined->max_groups < 1) {
      return InvalidArgument("max_groups = ", joined->max_groups, ": must be >= 1");
    }
  } else if (const auto* lost = std::get_if<WorkerLost>(&event)) {
    if (workers_.Find(lost->worker) == nullptr) {
      return InvalidArgument("worker = ", lost->worker, ": is not live");
    }
  } else if (const auto* response = std::get_if<ResponseFinished>(&event)) {
    return ValidateResponse(*response);
  } else if (const auto* failed = std::get_if<GroupFailed>(&event)) {
    if (failed->group.value() < 0 || failed->group >= groups_.next_id()) {
      return InvalidArgument("group = ", failed->group, ": was never started");
    }
  } else if (const auto* synced = std::get_if<WorkerSynced>(&event)) {
    const WorkerRecord* record = workers_.Find(synced->worker);
    if (record == nullptr) return InvalidArgument("worker = ", synced->worker, ": is not live");
    if (record->in_flight != synced->version) {
      return InvalidArgument("version = ", synced->version, ": worker ", synced->worker,
                             " has no sync to it in flight");
    }
  } else if (const auto* step = std::get_if<StepFinished>(&event)) {
    if (!training_ || step->step != version_) {
      return InvalidArgument("step = ", step->step, ": is not in training");
    }
    for (const double seconds : {step->seconds, step->waited}) {
      if (!(std::isfinite(seconds) && seconds >= 0)) {
        return InvalidArgument("seconds = ", seconds, ": must be finite and >= 0");
      }
    }
    if (step->num_tokens < 0) {
      return InvalidArgument("tokens = ", step->num_tokens, ": must be >= 0");
    }
  } else if (const auto* evaluation = std::get_if<EvaluationFinished>(&event)) {
    if (std::find(evaluating_.begin(), evaluating_.end(), evaluation->version) ==
        evaluating_.end()) {
      return InvalidArgument("version = ", evaluation->version, ": is not being evaluated");
    }
  } else if (const auto* checkpoint = std::get_if<CheckpointFinished>(&event)) {
    if (!checkpointing_ || checkpoint->step != version_) {
      return InvalidArgument("step = ", checkpoint->step, ": no such checkpoint is in flight");
    }
  }
  return Status::Ok();
}

Status Coordinator::ValidateResponse(const ResponseFinished& event) const {
  if (event.group.value() < 0 || event.group >= groups_.next_id()) {
    return InvalidArgument("group = ", event.group, ": was never started");
  }
  if (event.member < 0 || event.member >= options_.group_size) {
    return InvalidArgument("member = ", event.member, ": must be in [0, ", options_.group_size,
                           ")");
  }
  if (event.segments.empty()) return InvalidArgument("segments: must hold at least one token");
  PolicyVersion last(0);
  for (const Segment& segment : event.segments) {
    if (segment.num_tokens < 1) {
      return InvalidArgument("segments: ", segment.num_tokens, " tokens: must be >= 1");
    }
    if (segment.version < last || segment.version > version_) {
      return InvalidArgument("segments: version ", segment.version, ": must not fall, nor pass ",
                             version_, ", the trainer's");
    }
    last = segment.version;
  }
  if (event.prefix_score.has_value() &&
      !(std::isfinite(*event.prefix_score) && *event.prefix_score >= 0)) {
    return InvalidArgument("prefix_score = ", *event.prefix_score, ": must be finite and >= 0");
  }
  if (event.num_bytes < 0) {
    return InvalidArgument("num_bytes = ", event.num_bytes, ": must be >= 0");
  }
  const GroupRecord* record = groups_.Find(event.group);
  if (record != nullptr && record->state == GroupState::kRunning &&
      record->IsFinished(event.member)) {
    return InvalidArgument("member = ", event.member, ": of group ", event.group,
                           " has finished already");
  }
  return Status::Ok();
}

void Coordinator::CheckInvariants() const {
  groups_.CheckInvariants();
  workers_.CheckInvariants();
  pool_.CheckInvariants();
  const SupplyView view = supply_view();

  // Each group is in exactly one state, and none is lost or counted twice.
  PACE_CHECK(pool_.occupancy() == view.num_pooled, "pool holds ", pool_.occupancy(), ", table ",
             view.num_pooled);
  PACE_CHECK(static_cast<int64_t>(selected_.size()) == view.num_selected, "selected groups");
  PACE_CHECK(view.num_started == view.num_running + view.num_pooled + view.num_selected +
                                     view.num_trained + view.num_rejected + view.num_lost,
             "started ", view.num_started, " groups, accounted for ",
             view.num_running + view.num_pooled + view.num_selected + view.num_trained +
                 view.num_rejected + view.num_lost);
  PACE_CHECK(view.num_trained == version_.step() * options_.batch, "trained ", view.num_trained,
             " groups by version ", version_);

  // Credits.
  int64_t num_awaiting = 0;
  for (const AwaitingSync& awaiting : awaiting_sync_) num_awaiting += awaiting.num_groups;
  PACE_CHECK(num_awaiting == num_awaiting_sync_, "awaiting sync");
  if (const auto bound = supply_->MaxOutstanding()) {
    PACE_CHECK(view.num_outstanding() <= *bound, view.num_outstanding(), " credits of ", *bound);
  }

  // Versions.
  PACE_CHECK(published_ <= version_, "published ", published_, " above ", version_);
  for (const auto& [worker, record] : workers_.workers()) {
    PACE_CHECK(!record.promised().has_value() || *record.promised() <= published_, "worker ",
               worker, " was promised a version not yet published");
  }

  // The step.
  PACE_CHECK(!(gathering_ && training_), "a step gathers and trains at once");
  PACE_CHECK(gathering_ || training_ || selected_.empty(), "groups selected outside a step");
  PACE_CHECK(!training_ || view.num_selected == options_.batch, "training on ", view.num_selected,
             " groups");
  PACE_CHECK(!gathering_ || view.num_selected < options_.batch, "a full batch waits");

  // Liveness: with a live worker and no stop, something is always outstanding.
  if (workers_.num_live() > 0 && !stop_requested_ && !LastStepDone() && !stopped_) {
    PACE_CHECK(!NothingOutstanding(), "nothing is outstanding: ", WhyWaiting());
    PACE_CHECK(checkpointing_ || training_ || pool_.empty(), "the trainer idles beside a pool");
  }
}

std::string Coordinator::WhyWaiting() const {
  if (stopped_) return "stopped";
  const SupplyView view = supply_view();
  if (checkpointing_) return Concat("the checkpoint of step ", version_, " is being written");
  if (training_) return Concat("step ", version_, " is training on ", view.num_selected, " groups");
  if (stop_requested_ || LastStepDone()) {
    return Concat(evaluating_.size(), " evaluations are to finish before the run stops");
  }
  std::string why =
      Concat("step ", version_, " has ", view.num_selected, " of ", options_.batch, " groups; ",
             view.num_running, " groups run on ", workers_.num_live(), " workers");
  if (workers_.num_live() == 0) {
    why += " (no worker is live: start one)";
  } else if (workers_.num_syncing() > 0) {
    why += Concat(", ", workers_.num_syncing(), " of them syncing weights");
  }
  if (view.num_awaiting_sync > 0) {
    why += Concat("; ", view.num_awaiting_sync, " credits wait for a sync");
  }
  if (guard_.num_rejected() > 0) why += Concat("; ", guard_.num_rejected(), " groups rejected");
  return why;
}

// --- saving and restoring ---

CoordinatorSnapshot Coordinator::Save() const {
  CoordinatorSnapshot out;
  out.batch = options_.batch;
  out.group_size = options_.group_size;
  out.sync_interval = options_.sync_interval;
  out.num_events = num_events_;
  out.version = version_;
  out.published = published_;
  out.started = started_;
  out.gathering = gathering_;
  out.training = training_;
  out.checkpointing = checkpointing_;
  out.stop_requested = stop_requested_;
  out.final_checkpoint_done = final_checkpoint_done_;
  out.stopped = stopped_;
  out.evaluating = evaluating_;
  out.num_offered = num_offered_;
  out.num_rejected_in_step = guard_.num_rejected();
  out.num_guarded = guard_.num_guarded();
  out.num_trained = num_trained_;
  out.num_rejected = num_rejected_;
  out.num_lost = num_lost_;
  out.workers.assign(workers_.workers().begin(), workers_.workers().end());
  out.next_group = groups_.next_id();
  groups_.ForEach(
      [&out](GroupId id, const GroupRecord& record) { out.groups.emplace_back(id, record); });
  out.selected = selected_;
  out.awaiting_sync = awaiting_sync_;
  out.pool = pool_.Save();
  out.next_prompt = prompts_.next();
  out.resumed_prompts = prompts_.resumed();
  out.returned_prompts = prompts_.returned();
  out.throughput = throughput_.steps();
  out.current_throughput = throughput_.current();
  out.admission = admission_->Save();
  out.supply = supply_->Save();
  out.supply_limited = supply_limited_;
  return out;
}

Status Coordinator::Restore(const CoordinatorSnapshot& snapshot) {
  PACE_CHECK(!started_, "restore into a coordinator that has handled events");
  PACE_RETURN_IF_ERROR(
      CheckSnapshot(snapshot, {options_, admission_->NeedsMembers(), supply_->MaxOutstanding()}));
  PACE_RETURN_IF_ERROR(supply_->Restore(snapshot.supply).At("supply"));
  PACE_RETURN_IF_ERROR(admission_->Restore(snapshot.admission).At("admission"));
  num_events_ = snapshot.num_events;
  version_ = snapshot.version;
  published_ = snapshot.published;
  started_ = snapshot.started;
  gathering_ = snapshot.gathering;
  training_ = snapshot.training;
  checkpointing_ = snapshot.checkpointing;
  stop_requested_ = snapshot.stop_requested;
  final_checkpoint_done_ = snapshot.final_checkpoint_done;
  stopped_ = snapshot.stopped;
  supply_limited_ = snapshot.supply_limited;
  evaluating_ = snapshot.evaluating;
  num_offered_ = snapshot.num_offered;
  guard_.Restore(snapshot.admission.plan.step, snapshot.num_rejected_in_step, snapshot.num_guarded);
  num_trained_ = snapshot.num_trained;
  num_rejected_ = snapshot.num_rejected;
  num_lost_ = snapshot.num_lost;
  for (const auto& [id, record] : snapshot.workers) workers_.Insert(id, record);
  for (const auto& [id, record] : snapshot.groups) groups_.Insert(id, record);
  groups_.ReserveIds(snapshot.next_group);
  selected_ = snapshot.selected;
  awaiting_sync_ = snapshot.awaiting_sync;
  num_awaiting_sync_ = 0;
  for (const AwaitingSync& awaiting : awaiting_sync_) num_awaiting_sync_ += awaiting.num_groups;
  std::vector<PooledGroup> pool;
  for (const PooledGroup& group : snapshot.pool) pool.push_back(group.Copy());
  pool_.Restore(std::move(pool));
  prompts_.Restore(snapshot.next_prompt, snapshot.resumed_prompts, snapshot.returned_prompts);
  throughput_.Restore(snapshot.throughput, snapshot.current_throughput);
  return Status::Ok();
}

std::vector<Command> Coordinator::Owed() const {
  std::vector<Command> owed;
  for (const auto& [worker, record] : workers_.workers()) {
    if (record.in_flight.has_value()) owed.push_back(SyncWeights{worker, *record.in_flight});
  }
  for (const GroupId id : groups_.Running()) {
    const GroupRecord& record = *groups_.Find(id);
    owed.push_back(StartGroup{id, record.worker, record.prompt, record.attempt});
  }
  if (training_) owed.push_back(TrainBatch{version_, selected_});
  for (const PolicyVersion version : evaluating_) owed.push_back(Evaluate{version});
  if (checkpointing_) owed.push_back(Checkpoint{version_});
  return owed;
}

}  // namespace pace
