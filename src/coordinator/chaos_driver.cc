#include "coordinator/chaos_driver.h"

#include <algorithm>

#include "coordinator/event_json.h"
#include "core/check.h"

namespace pace {

ChaosDriver::ChaosDriver(const ChaosOptions& options, uint64_t seed,
                         std::unique_ptr<Coordinator> coordinator)
    : options_(options), random_(seed), coordinator_(std::move(coordinator)) {}

void ChaosDriver::Fail(const std::string& what) {
  if (failure_.empty()) failure_ = Concat("after ", num_events_, " events: ", what);
}

void ChaosDriver::Shadow(std::unique_ptr<Coordinator> copy) {
  shadow_ = std::move(copy);
}

void ChaosDriver::Deliver(const Event& event) {
  ++num_events_;
  const std::vector<Command> commands = coordinator_->Handle(event);
  coordinator_->CheckInvariants();
  if (shadow_ != nullptr) {
    const std::vector<Command> same = shadow_->Handle(event);
    if (commands.size() != same.size()) Fail("the restored copy asks for other commands");
    for (size_t i = 0; i < std::min(commands.size(), same.size()); ++i) {
      if (CommandToJson(commands[i]) != CommandToJson(same[i])) {
        Fail(Concat("the restored copy says ", CommandToJson(same[i]), " instead of ",
                    CommandToJson(commands[i])));
      }
    }
  }
  for (const Command& command : commands) Execute(command);
}

void ChaosDriver::Execute(const Command& command) {
  if (stopped_) Fail("a command after Stop");
  const bool is_allowed =
      std::holds_alternative<DropGroup>(command) || std::holds_alternative<SyncWeights>(command);
  if (checkpoint_.has_value() && !is_allowed)
    Fail("a command during a checkpoint: " + CommandToJson(command));
  std::visit([this](const auto& typed) { ExecuteTyped(typed); }, command);
}

void ChaosDriver::ExecuteTyped(const StartGroup& command) {
  if (!started_.insert(command.group).second)
    Fail(Concat("group ", command.group, " started twice"));
  workers_.at(command.worker).queue.push_back(command);
}

void ChaosDriver::ExecuteTyped(const AbandonGroup& command) {
  if (!ended_.insert(command.group).second) Fail(Concat("group ", command.group, " ended twice"));
  for (auto& [id, worker] : workers_) {
    worker.running.erase(command.group);
    std::erase_if(worker.queue, [&](const Command& queued) {
      const auto* start = std::get_if<StartGroup>(&queued);
      return start != nullptr && start->group == command.group;
    });
  }
}

void ChaosDriver::ExecuteTyped(const SyncWeights& command) {
  workers_.at(command.worker).queue.push_back(command);
}

void ChaosDriver::ExecuteTyped(const TrainBatch& command) {
  if (training_.has_value()) Fail("two batches in training");
  if (command.step != coordinator_->version()) Fail("a batch for another step");
  if (static_cast<int64_t>(command.groups.size()) != options_.coordinator.batch) {
    Fail(Concat("a batch of ", command.groups.size()));
  }
  if (!std::is_sorted(command.groups.begin(), command.groups.end())) Fail("batch not sorted");
  for (const GroupId group : command.groups) {
    if (!completed_.contains(group)) Fail(Concat("group ", group, " trained but not complete"));
    if (!ended_.insert(group).second) Fail(Concat("group ", group, " trained after it ended"));
    if (options_.check_on_policy && oldest_token_.at(group) != command.step) {
      Fail(Concat("group ", group, " has a token of version ", oldest_token_.at(group), " in step ",
                  command.step));
    }
  }
  training_ = command;
}

void ChaosDriver::ExecuteTyped(const DropGroup& command) {
  if (!completed_.contains(command.group)) Fail("a group dropped that was not complete");
  if (!ended_.insert(command.group).second) Fail(Concat("group ", command.group, " ended twice"));
}

void ChaosDriver::Join() {
  const WorkerId worker(next_worker_++);
  workers_.emplace(worker, Worker{});
  Deliver(WorkerJoined{worker, 1 + random_.Below(5)});
}

void ChaosDriver::Work(WorkerId id) {
  Worker& worker = workers_.at(id);
  const Command command = worker.queue.front();
  worker.queue.pop_front();
  if (const auto* start = std::get_if<StartGroup>(&command)) {
    if (!worker.synced) Fail("a group started before the first sync");
    auto& members = worker.running[start->group];
    members.resize(static_cast<size_t>(options_.coordinator.group_size));
    for (Member& member : members) member.runs.Append(worker.version, 1 + random_.Below(3));
    return;
  }
  const PolicyVersion version = std::get<SyncWeights>(command).version;
  if (worker.synced && version <= worker.version) Fail("a worker went back in version");
  worker.synced = true;
  worker.version = version;
  for (auto& [group, members] : worker.running) {
    for (Member& member : members) {
      if (!member.finished && random_.Chance(0.8)) member.runs.Append(version, 1);
    }
  }
  Deliver(WorkerSynced{id, version});
}

void ChaosDriver::FinishResponse(WorkerId id, GroupId group, size_t index) {
  auto& members = workers_.at(id).running.at(group);
  Member& member = members[index];
  member.finished = true;
  ResponseFinished event;
  event.group = group;
  event.member = static_cast<int64_t>(index);
  event.segments = member.runs.segments();
  if (event.segments.size() > 1) event.prefix_score = random_.Unit();
  event.num_bytes = random_.Below(500);
  const PolicyVersion oldest = event.segments.front().version;
  const auto known = oldest_token_.emplace(group, oldest).first;
  known->second = std::min(known->second, oldest);
  const bool complete =
      std::all_of(members.begin(), members.end(), [](const Member& m) { return m.finished; });
  if (complete) {
    completed_.insert(group);
    workers_.at(id).running.erase(group);
  }
  Deliver(event);
}

bool ChaosDriver::FinishSome(WorkerId id, bool random) {
  Worker& worker = workers_.at(id);
  if (worker.running.empty()) return false;
  auto group = worker.running.begin();
  if (random) std::advance(group, random_.Below(static_cast<int64_t>(worker.running.size())));
  std::vector<size_t> open;
  for (size_t i = 0; i < group->second.size(); ++i) {
    if (!group->second[i].finished) open.push_back(i);
  }
  const auto pick = random ? random_.Below(static_cast<int64_t>(open.size())) : 0;
  FinishResponse(id, group->first, open[static_cast<size_t>(pick)]);
  return true;
}

bool ChaosDriver::DeliverRandom() {
  if (stopped_) return false;
  const int64_t choice = random_.Below(100);
  if (workers_.empty() ||
      (choice < 3 && static_cast<int64_t>(workers_.size()) < options_.max_workers)) {
    Join();
    return true;
  }
  auto worker = workers_.begin();
  std::advance(worker, random_.Below(static_cast<int64_t>(workers_.size())));
  if (options_.failures && choice < 5) {
    const WorkerId id = worker->first;
    for (const auto& [group, members] : worker->second.running) ended_.insert(group);
    for (const Command& command : worker->second.queue) {
      if (const auto* start = std::get_if<StartGroup>(&command)) ended_.insert(start->group);
    }
    workers_.erase(worker);
    Deliver(WorkerLost{id});
    return true;
  }
  if (options_.failures && choice < 7 && !worker->second.running.empty()) {
    const GroupId group = worker->second.running.begin()->first;
    worker->second.running.erase(group);
    ended_.insert(group);
    Deliver(GroupFailed{group});
    return true;
  }
  if (options_.failures && choice < 8 && !ended_.empty()) {
    // A late report about a group that has ended.
    ResponseFinished late;
    late.group = *ended_.begin();
    late.segments = {{PolicyVersion(0), 1}};
    Deliver(late);
    return true;
  }
  if (choice < 20 && training_.has_value()) {
    const PolicyVersion step = training_->step;
    training_.reset();
    ++num_steps_trained_;
    Deliver(StepFinished{step});
    return true;
  }
  if (choice < 25 && checkpoint_.has_value()) {
    const PolicyVersion step = *checkpoint_;
    checkpoint_.reset();
    Deliver(CheckpointFinished{step});
    return true;
  }
  if (choice < 30 && !evaluating_.empty()) {
    const PolicyVersion version = evaluating_.back();  // any order
    evaluating_.pop_back();
    Deliver(EvaluationFinished{version});
    return true;
  }
  if (choice < 60 && !worker->second.queue.empty()) {
    Work(worker->first);
    return true;
  }
  return FinishSome(worker->first, /*random=*/true);
}

bool ChaosDriver::DeliverFair() {
  if (stopped_) return false;
  if (workers_.empty()) return Join(), true;
  if (checkpoint_.has_value()) {
    const PolicyVersion step = *checkpoint_;
    checkpoint_.reset();
    Deliver(CheckpointFinished{step});
    return true;
  }
  if (training_.has_value()) {
    const PolicyVersion step = training_->step;
    training_.reset();
    ++num_steps_trained_;
    Deliver(StepFinished{step});
    return true;
  }
  for (auto& [id, worker] : workers_) {
    if (worker.queue.empty()) continue;
    Work(id);
    return true;
  }
  for (auto& [id, worker] : workers_) {
    if (FinishSome(id, /*random=*/false)) return true;
  }
  if (!evaluating_.empty()) {
    const PolicyVersion version = evaluating_.front();
    evaluating_.erase(evaluating_.begin());
    Deliver(EvaluationFinished{version});
    return true;
  }
  return false;
}

}  // namespace pace
