#include <algorithm>
#include <map>
#include <set>

#include "execution/checkpoint.h"

namespace pace {
namespace {

// What keys of random numbers have room for.
constexpr int64_t kMaxPrompt = int64_t{1} << 40;

// Versions only grow over a response, up to `newest`.
Status CheckVersions(const PartialResponse& response, PolicyVersion newest) {
  PolicyVersion last(0);
  for (const TokenRecord& token : response.tokens) {
    if (token.version < last || token.version > newest) {
      return DataLoss("a token of version ", token.version, " behind one of ", last,
                      ", the newest is ", newest);
    }
    last = token.version;
  }
  return Status::Ok();
}

Status CheckMember(const Trajectory& member, PolicyVersion step) {
  if (member.response.tokens.empty()) return DataLoss("a finished response has no tokens");
  if (member.response.tokens.front().is_tool)
    return DataLoss("a response begins with a tool's token");
  if (member.completed > step) {
    return DataLoss("a response was completed at version ", member.completed, ", the run is at ",
                    step);
  }
  return CheckVersions(member.response, member.completed);
}

// The record of one group against what the coordinator knows of it.
Status CheckGroup(const GroupTrajectories& group, const GroupRecord& record,
                  const CoordinatorSnapshot& coordinator) {
  if (group.prompt != record.prompt || group.prompt.value() >= kMaxPrompt ||
      group.prompt_tokens.empty()) {
    return DataLoss("its prompt is not the coordinator's");
  }
  if (record.state == GroupState::kRunning && group.worker != record.worker) {
    return DataLoss("its worker is not the coordinator's");
  }
  if (static_cast<int64_t>(group.members.size()) != coordinator.group_size) {
    return DataLoss("it has ", group.members.size(), " members of ", coordinator.group_size);
  }
  for (size_t i = 0; i < group.members.size(); ++i) {
    const FinishedTrajectory& member = group.members[i];
    const bool is_running = record.state == GroupState::kRunning;
    const int64_t num_tokens = member.has_value() ? member->response.num_policy_tokens() : 0;
    const bool fits = is_running
                          ? i < record.members.size() && record.members[i].num_tokens == num_tokens
                          : member.has_value();
    if (!fits) return DataLoss("member ", i, " is not as far as the coordinator says");
    if (member.has_value()) PACE_RETURN_IF_ERROR(CheckMember(*member, coordinator.version));
  }
  return Status::Ok();
}

// Every unfinished member of a running group is on its way, and nothing else is.
Status CheckInFlight(const GroupInFlight& group, const GroupTrajectories& known,
                     PolicyVersion served) {
  std::vector<int64_t> unfinished;
  for (size_t i = 0; i < known.members.size(); ++i) {
    if (!known.members[i].has_value()) unfinished.push_back(static_cast<int64_t>(i));
  }
  if (group.members != unfinished || unfinished.empty()) {
    return DataLoss("not its unfinished members are in flight");
  }
  for (const PartialResponse& response : group.responses) {
    if (response.awaits_score && response.tokens.empty()) {
      return DataLoss("a response awaits a score, but has no tokens");
    }
    PACE_RETURN_IF_ERROR(CheckVersions(response, served));
  }
  return Status::Ok();
}

// Every call belongs to a response that rests, one each, and returns in the future.
Status CheckCalls(const RunCheckpoint& run) {
  std::set<MemberId> resting;
  for (const GroupInFlight& group : run.in_flight) {
    for (size_t i = 0; i < group.members.size(); ++i) {
      if (group.responses[i].paused.has_value()) resting.insert({group.group, group.members[i]});
    }
  }
  for (const CallInFlight& call : run.calls) {
    if (resting.erase(call.id) == 0 || call.due < run.time) {
      return DataLoss("calls: response ", call.id.member, " of group ", call.id.group,
                      " does not wait for one");
    }
  }
  return Status::Ok();
}

Status CheckRun(const RunCheckpoint& run) {
  const CoordinatorSnapshot& coordinator = run.coordinator;
  if (run.step != coordinator.version || run.served > run.step) {
    return DataLoss("step = ", run.step, ", served = ", run.served,
                    ": the coordinator is at version ", coordinator.version);
  }
  if (!coordinator.checkpointing || coordinator.training) {
    return DataLoss("the coordinator was not saving");
  }
  if (run.step_clock.last > run.time) {
    return DataLoss("part_since = ", run.step_clock.last.count(),
                    ": is behind time = ", run.time.count());
  }
  int64_t next = 0;
  for (const auto& [id, worker] : coordinator.workers) {
    if (id.value() != next++ || worker.in_flight.has_value() || worker.served != run.served) {
      return DataLoss("worker ", id, ": does not serve version ", run.served);
    }
  }
  return Status::Ok();
}

}  // namespace

Status CheckWorkers(const RunCheckpoint& run, int64_t num_engines) {
  const auto num_workers = static_cast<int64_t>(run.coordinator.workers.size());
  if (num_workers == num_engines) return Status::Ok();
  return DataLoss("coordinator.json: has ", num_workers, " workers, the run has ", num_engines,
                  " engines");
}

Status CheckAgreement(const RunCheckpoint& run) {
  PACE_RETURN_IF_ERROR(CheckRun(run).At("run.json"));
  std::map<GroupId, const GroupRecord*> records;
  size_t num_running = 0;
  for (const auto& [id, record] : run.coordinator.groups) {
    records.emplace(id, &record);
    num_running += record.state == GroupState::kRunning ? 1 : 0;
  }
  std::map<GroupId, const GroupTrajectories*> known;
  for (const GroupTrajectories& group : run.groups) {
    const auto record = records.find(group.group);
    const std::string place = Concat("groups: group ", group.group);
    if (record == records.end() || !known.emplace(group.group, &group).second) {
      return DataLoss(place, ": is listed twice, or no group of the coordinator");
    }
    PACE_RETURN_IF_ERROR(CheckGroup(group, *record->second, run.coordinator).At(place));
  }
  if (known.size() != records.size()) {
    return DataLoss("groups: has ", known.size(), " groups of ", records.size());
  }
  std::set<GroupId> in_flight;
  for (const GroupInFlight& group : run.in_flight) {
    const std::string place = Concat("in_flight: group ", group.group);
    const auto record = records.find(group.group);
    if (record == records.end() || record->second->state != GroupState::kRunning ||
        !in_flight.insert(group.group).second) {
      return DataLoss(place, ": is listed twice, or does not run");
    }
    PACE_RETURN_IF_ERROR(CheckInFlight(group, *known.at(group.group), run.served).At(place));
  }
  if (in_flight.size() != num_running) {
    return DataLoss("in_flight: has ", in_flight.size(), " groups of ", num_running);
  }
  return CheckCalls(run).At("run.json");
}

}  // namespace pace
