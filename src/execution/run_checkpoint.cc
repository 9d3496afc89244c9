#include "execution/run_checkpoint.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "control/admission_json.h"
#include "core/json_record.h"

namespace pace {
namespace {

// 1 kept responses as JSON, without settings and version.
constexpr int64_t kRunFormat = 2;

// Why a response is paused; none where the key is missing.
struct PausedFor {
  std::optional<FinishReason>& reason;
};
void ReadJson(JsonScanner& scan, const PausedFor& paused) {
  int64_t reason = 0;
  scan.Integer(0, static_cast<int64_t>(FinishReason::kStopString), "", reason);
  paused.reason = static_cast<FinishReason>(reason);
}

// A real number of any sign, or null.
struct SignedReal {
  std::optional<double>& value;
};
void WriteJson(JsonWriter& json, const SignedReal& real) {
  json.Value(real.value);
}
void ReadJson(JsonScanner& scan, const SignedReal& real) {
  if (!scan.TakeNull()) scan.Real(-kLargestJsonReal, kLargestJsonReal, "", real.value.emplace());
}

// Log-probabilities that are not finite were written null.
float ScanFloat(JsonScanner& scan) {
  if (scan.TakeNull()) return -std::numeric_limits<float>::infinity();
  double value = 0;
  scan.Real(-kLargestJsonReal, kLargestJsonReal, "", value);
  return static_cast<float>(value);
}

}  // namespace

// [id, version, logprob, sampled_logprob], or [id, version] of a tool token.
void ReadJson(JsonScanner& scan, TokenRecord& token) {
  int64_t id = 0;
  int64_t version = 0;
  int field = 0;
  scan.EnterArray();
  for (; scan.NextItem(); ++field) {
    if (field == 0) {
      scan.Integer(0, std::numeric_limits<TokenId>::max(), "", id);
    } else if (field == 1) {
      scan.Integer(0, kLargestJsonInteger, "", version);
    } else if (field == 2) {
      token.logprob = ScanFloat(scan);
    } else if (field == 3) {
      token.sampled_logprob = ScanFloat(scan);
    } else {
      scan.Fail("a token has four fields");
    }
  }
  if (field != 4 && field != 2) scan.Fail("a token has four fields, or two if a tool wrote it");
  token.is_tool = field == 2;
  token.id = static_cast<TokenId>(id);
  token.version = PolicyVersion(version);
}

template <typename V>
void JsonKeys(V& v, PartialResponse& response) {
  v("tokens", response.tokens);
  v("prefix_score", response.prefix_score);
  v("awaits_score", response.awaits_score);
  v("num_interrupts", response.num_interrupts);
  v.Optional("rests", PausedFor{response.paused});
}
template <typename V>
void JsonKeys(V& v, Trajectory& trajectory) {
  v("reason", AsNumber(trajectory.reason, FinishReason::kMaxTokens));
  v("correct", trajectory.correct);
  v("reward", Within(trajectory.reward, -kLargestJsonReal, kLargestJsonReal));
  v("completed", trajectory.completed);
  JsonKeys(v, trajectory.response);
}
void ReadJson(JsonScanner& scan, FinishedTrajectory& member) {
  std::optional<Trajectory> trajectory;
  GetJson(scan, trajectory);
  if (trajectory.has_value()) member = *std::move(trajectory);
}
template <typename V>
void JsonItems(V& v, ToolRecord& record) {
  v(record.num_calls);
  v(Within(record.num_failures, 0, record.num_calls, "no more than there were calls"));
  v(record.time);
}
template <typename V>
void JsonKeys(V& v, GroupTrajectories& group) {
  v("group", group.group);
  v("prompt", group.prompt);
  v("worker", group.worker);
  v("prompt_tokens", group.prompt_tokens);
  v.Optional("greedy_last", group.greedy_last);
  v("members", group.members);
  v.Optional("tools", group.tools);
}
template <typename V>
void JsonItems(V& v, CallInFlight& call) {
  v(call.id.group);
  v(call.id.member);
  v(call.made);
  v(Within(call.due, call.made, Seconds(kLargestJsonReal), "returns after it was made"));
}
template <typename V>
void JsonKeys(V& v, SavedEnvironment& saved) {
  EnvironmentRecord& record = saved.record;
  v("group", saved.id.group);
  v("member", saved.id.member);
  v("kept", saved.kept);
  v("num_steps", record.num_steps);
  v("reward", SignedReal{record.reward});
  v("correct", record.correct);
  v("detail", record.detail);
  v("state", record.state);
}
template <typename V>
void JsonKeys(V& v, RunTotals& totals) {
  v("num_trained_groups", totals.num_trained_groups);
  v("num_tokens_generated", totals.num_tokens_generated);
  v("num_tokens_never_trained", totals.num_tokens_never_trained);
  v("num_interrupted", totals.num_interrupted);
}
template <typename V>
void JsonItems(V& v, RunWarnings::Repeats& repeats) {
  v(repeats.count);
  v(Within(repeats.next, 1, kLargestJsonInteger));
}
template <typename V>
void JsonKeys(V& v, RunWarnings::State& state) {
  v("repeats", state.repeats);
  v.Optional("failed_rewards", state.failed_rewards, state.failed_rewards.count > 0);
  v("num_equal_steps", state.num_equal_steps);
  v("num_wrong_steps", state.num_wrong_steps);
  v("num_wrong_responses", state.num_wrong_responses);
  v("any_correct", state.any_correct);
  v("num_dropped", state.num_dropped);
}

template <typename V>
void JsonItems(V& v, StepMetrics::Spread& spread) {
  v(Within(spread.sum, -kLargestJsonReal, kLargestJsonReal));
  v(Within(spread.max, -kLargestJsonReal, kLargestJsonReal));
  v(spread.count);
}
template <typename V>
void JsonKeys(V& v, StepMetrics::State& drawn) {
  v("plan", drawn.plan);
  v("num_offered", drawn.num_offered);
  v("num_rejected", drawn.num_rejected);
  v("num_guarded", drawn.num_guarded);
  v("num_scored", drawn.num_scored);
  v("waiting", drawn.waiting);
  v("waiting_assembly", drawn.waiting_assembly);
  v("waiting_pool", drawn.waiting_pool);
  v("generation", drawn.generation);
  v("effective", drawn.effective);
  v("lag", drawn.lag);
  v("prefix", drawn.prefix);
  v("length_offered", drawn.length_offered);
  v("length_trained", drawn.length_trained);
  v("reward_offered", drawn.reward_offered);
  v("reward_trained", drawn.reward_trained);
  v("turns_offered", drawn.turns_offered);
  v("turns_trained", drawn.turns_trained);
  v("equal_offered", drawn.equal_offered);
  v("equal_trained", drawn.equal_trained);
  v("truncated_offered", drawn.truncated_offered);
  v("truncated_trained", drawn.truncated_trained);
  v("tool_calls", drawn.tool_calls);
  v("tool_failures", drawn.tool_failures);
  v("tool_seconds", drawn.tool_seconds);
}
template <typename V>
void JsonKeys(V& v, StepFacts& facts) {
  v("step", facts.step);
  v("warming_up", facts.warming_up);
  v("budget", facts.budget);
  v("num_offered", facts.num_offered);
  v("num_rejected", facts.num_rejected);
  v("num_trained", facts.num_trained);
  v("num_equal_rewards", facts.num_equal_rewards);
  v("num_responses", facts.num_responses);
  v("num_correct", facts.num_correct);
  v("last_response", facts.last_response);
}
template <typename V>
void JsonKeys(V& v, RunJournal::UnderWay& step) {
  v("drawn", step.journal.drawn);
  v("pool_bytes", step.journal.pool_bytes);
  v("facts", step.facts);
}

namespace {

// Unfinished responses as checkpoints of format 1 have them.
struct MemberInFlight {
  int64_t member = 0;
  PartialResponse response = {};
};
struct InFlightText {
  GroupId group{};
  std::vector<MemberInFlight> responses = {};
};
template <typename V>
void JsonKeys(V& v, MemberInFlight& member) {
  v("member", member.member);
  JsonKeys(v, member.response);
}
template <typename V>
void JsonKeys(V& v, InFlightText& group) {
  v("group", group.group);
  v("responses", group.responses);
}

struct RunText {
  RunCheckpoint& run;
  int64_t format = kRunFormat;
  // Since format 2.
  std::optional<std::string> version = {};
  std::optional<std::string> commit = {};
};
template <typename V>
void JsonKeys(V& v, RunText& text) {
  RunCheckpoint& run = text.run;
  v("format", Within(text.format, 1, kRunFormat, "written by another version of pace"));
  v.Optional("pace", text.version);
  v.Optional("commit", text.commit);
  v("step", run.step);
  v("served", run.served);
  v("time", run.time);
  v("part", AsNumber(run.step_clock.part, StepPart::kOther));
  v("part_since", run.step_clock.last);
  v("parts", run.step_clock.parts);
  v("rescoring", run.rescoring);
  v.Optional("busy", run.busy);
  v.Optional("sampled", run.num_sampled, run.num_sampled > 0);
  v("totals", run.totals);
  v("step_totals", run.step_totals);
  v.Optional("warnings", run.warnings);
  v.Optional("under_way", run.under_way, run.under_way.has_value());
  v.Optional("calls", run.calls, !run.calls.empty());
  v.Optional("environments", run.environments, !run.environments.empty());
  v("record_sizes", run.record_sizes);
}

}  // namespace

Result<GroupTrajectories> GroupFromJson(std::string_view text) {
  GroupTrajectories group;
  PACE_RETURN_IF_ERROR(FromJson(text, group));
  PACE_RETURN_IF_ERROR(CheckShape(group));
  return group;
}

Result<GroupInFlight> InFlightFromJson(std::string_view text) {
  InFlightText read;
  PACE_RETURN_IF_ERROR(FromJson(text, read));
  GroupInFlight group = {.group = read.group};
  for (MemberInFlight& member : read.responses) {
    group.members.push_back(member.member);
    group.responses.push_back(std::move(member.response));
  }
  return group;
}

std::string RunToJson(const RunCheckpoint& run) {
  // Writing changes nothing.
  return JsonOf(RunText{.run = const_cast<RunCheckpoint&>(run),
                        .version = run.version,
                        .commit = run.commit}) +
         "\n";
}

Status RunFromJson(std::string_view text, RunCheckpoint& run) {
  RunText read{.run = run};
  PACE_RETURN_IF_ERROR(FromJson(text, read));
  for (const auto& [name, value] : {std::pair{"pace", &read.version}, {"commit", &read.commit}}) {
    if (read.format >= 2 && !value->has_value()) return InvalidArgument("missing key ", name);
  }
  run.version = read.version.value_or("");
  run.commit = read.commit.value_or("");
  return Status::Ok();
}

// --- agreement ---

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
  if (run.under_way.has_value()) {
    const PolicyVersion step = run.under_way->journal.drawn.plan.step;
    if (step != run.step || !coordinator.gathering) {
      return DataLoss("under_way: step ", step, " does not wait for groups");
    }
  }
  for (const auto& [id, worker] : coordinator.workers) {
    if (worker.in_flight.has_value() || worker.served != run.served) {
      return DataLoss("worker ", id, ": does not serve version ", run.served);
    }
  }
  return Status::Ok();
}

}  // namespace

Status CheckWorkers(const RunCheckpoint& run, int64_t num_engines) {
  const auto num_workers = static_cast<int64_t>(run.coordinator.workers.size());
  if (num_workers != num_engines) {
    return DataLoss("coordinator.json: has ", num_workers, " workers, the run has ", num_engines,
                    " engines");
  }
  int64_t next = 0;
  for (const auto& [id, worker] : run.coordinator.workers) {
    if (id.value() != next++) return DataLoss("coordinator.json: worker ", id, " has no engine");
  }
  return Status::Ok();
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
