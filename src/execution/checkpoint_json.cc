#include <array>
#include <limits>
#include <utility>

#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "execution/checkpoint.h"

namespace pace {
namespace {

constexpr int64_t kLargest = int64_t{1} << 53;
constexpr int64_t kLargestToken = int64_t{1} << 31;
constexpr double kReal = std::numeric_limits<double>::max();

// [[id, version, logprob, sampled_logprob], ...]; [id, version] where it was given
void PutTokens(JsonWriter& json, const std::vector<TokenRecord>& tokens) {
  json.Key("tokens");
  json.BeginArray();
  for (const TokenRecord& token : tokens) {
    json.BeginArray();
    json.Value(token.id);
    json.Value(token.version.step());
    if (!token.given) {
      json.Value(static_cast<double>(token.logprob));
      json.Value(static_cast<double>(token.sampled_logprob));
    }
    json.EndArray();
  }
  json.EndArray();
}

void PutResponse(JsonWriter& json, const PartialResponse& response) {
  PutTokens(json, response.tokens);
  json.Put("prefix_score", response.prefix_score);
  json.Put("awaits_score", response.awaits_score);
  json.Put("num_interrupts", response.num_interrupts);
  if (response.rests.has_value()) json.Put("rests", static_cast<int64_t>(*response.rests));
}

// Log-probs of -inf are written null.
float ScanFloat(JsonScanner& scan) {
  if (scan.TakeNull()) return -std::numeric_limits<float>::infinity();
  double value = 0;
  scan.Real(-kReal, kReal, "", value);
  return static_cast<float>(value);
}

void ScanTokens(JsonScanner& scan, std::vector<TokenRecord>& tokens) {
  scan.EnterArray();
  while (scan.NextItem()) {
    TokenRecord token;
    int64_t id = 0;
    int64_t version = 0;
    int field = 0;
    scan.EnterArray();
    for (; scan.NextItem(); ++field) {
      if (field == 0) {
        scan.Integer(0, kLargestToken - 1, "", id);
      } else if (field == 1) {
        scan.Integer(0, kLargest, "", version);
      } else if (field == 2) {
        token.logprob = ScanFloat(scan);
      } else if (field == 3) {
        token.sampled_logprob = ScanFloat(scan);
      } else {
        scan.Fail("a token has four fields");
      }
    }
    if (field != 4 && field != 2) scan.Fail("a token has four fields, or two where it was given");
    token.given = field == 2;
    token.id = static_cast<TokenId>(id);
    token.version = PolicyVersion(version);
    tokens.push_back(token);
  }
}

bool ScanResponseKey(JsonScanner& scan, PartialResponse& response) {
  if (scan.key() == "tokens") {
    ScanTokens(scan, response.tokens);
  } else if (scan.key() == "prefix_score") {
    if (!scan.TakeNull()) scan.Real(0, kReal, "", response.prefix_score.emplace());
  } else if (scan.key() == "awaits_score") {
    scan.Bool(response.awaits_score);
  } else if (scan.key() == "num_interrupts") {
    scan.Integer(0, kLargest, "", response.num_interrupts);
  } else if (scan.key() == "rests") {
    int64_t reason = 0;
    scan.Integer(0, static_cast<int64_t>(FinishReason::kStopString), "", reason);
    response.rests = static_cast<FinishReason>(reason);
  } else {
    return false;
  }
  return true;
}

template <typename T>
void ScanId(JsonScanner& scan, T& id) {
  int64_t value = 0;
  scan.Integer(0, kLargest, "", value);
  id = T(value);
}

void PutMember(JsonWriter& json, const std::optional<Trajectory>& member) {
  if (!member.has_value()) return json.Value(nullptr);
  json.BeginObject();
  json.Put("reason", static_cast<int64_t>(member->reason));
  json.Put("correct", member->correct);
  json.Put("reward", member->reward);
  json.Put("completed", member->completed.step());
  PutResponse(json, member->response);
  json.EndObject();
}

void ScanMember(JsonScanner& scan, std::optional<Trajectory>& member) {
  if (scan.TakeNull()) return;
  Trajectory& trajectory = member.emplace();
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "reason") {
      int64_t reason = 0;
      scan.Integer(0, static_cast<int64_t>(FinishReason::kMaxTokens), "", reason);
      trajectory.reason = static_cast<FinishReason>(reason);
    } else if (scan.key() == "correct") {
      scan.Bool(trajectory.correct);
    } else if (scan.key() == "reward") {
      scan.Real(-kReal, kReal, "", trajectory.reward);
    } else if (scan.key() == "completed") {
      ScanId(scan, trajectory.completed);
    } else if (!ScanResponseKey(scan, trajectory.response)) {
      scan.FailUnknownKey();
    }
  }
}

// [[calls, failures, seconds], ...]
void PutTools(JsonWriter& json, const std::vector<ToolRecord>& tools) {
  json.Key("tools");
  json.BeginArray();
  for (const ToolRecord& record : tools) {
    json.BeginArray();
    json.Value(record.num_calls);
    json.Value(record.num_failures);
    json.Value(record.time.count());
    json.EndArray();
  }
  json.EndArray();
}

void ScanTools(JsonScanner& scan, std::vector<ToolRecord>& tools) {
  scan.EnterArray();
  while (scan.NextItem()) {
    ToolRecord& record = tools.emplace_back();
    double seconds = 0;
    int field = 0;
    scan.EnterArray();
    for (; scan.NextItem(); ++field) {
      if (field == 0) {
        scan.Integer(0, kLargest, "", record.num_calls);
      } else if (field == 1) {
        scan.Integer(0, record.num_calls, "of so many calls", record.num_failures);
      } else {
        scan.Real(0, kReal, "", seconds);
      }
    }
    if (field != 3) scan.Fail("a record of calls has three fields");
    record.time = Seconds(seconds);
  }
}

// [[group, member, made, due], ...]
void ScanCalls(JsonScanner& scan, std::vector<CallInFlight>& calls) {
  scan.EnterArray();
  while (scan.NextItem()) {
    CallInFlight& call = calls.emplace_back();
    double due = 0;
    double made = 0;
    int field = 0;
    scan.EnterArray();
    for (; scan.NextItem(); ++field) {
      if (field == 0) {
        ScanId(scan, call.id.group);
      } else if (field == 1) {
        scan.Integer(0, kLargest, "", call.id.member);
      } else if (field == 2) {
        scan.Real(0, kReal, "", made);
      } else {
        scan.Real(made, kReal, "returns after it was made", due);
      }
    }
    if (field != 4) scan.Fail("a call in flight has four fields");
    call.made = Seconds(made);
    call.due = Seconds(due);
  }
}

// The totals by name, for both directions.
template <typename Totals>
auto TotalFields(Totals& totals) {
  return std::array{std::pair{"num_trained_groups", &totals.num_trained_groups},
                    std::pair{"num_tokens_generated", &totals.num_tokens_generated},
                    std::pair{"num_tokens_never_trained", &totals.num_tokens_never_trained},
                    std::pair{"num_interrupted", &totals.num_interrupted}};
}

void PutTotals(JsonWriter& json, std::string_view key, const RunTotals& totals) {
  json.Key(key);
  json.BeginObject();
  for (const auto& [name, value] : TotalFields(totals)) json.Put(name, *value);
  json.EndObject();
}

void ScanTotals(JsonScanner& scan, RunTotals& totals) {
  scan.EnterObject();
  while (scan.NextKey()) {
    bool known = false;
    for (const auto& [name, value] : TotalFields(totals)) {
      if (scan.key() != name) continue;
      known = true;
      scan.Integer(0, kLargest, "", *value);
      break;
    }
    if (!known) scan.FailUnknownKey();
  }
}

}  // namespace

std::string GroupToJson(const GroupTrajectories& group) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("group", group.group.value());
  json.Put("prompt", group.prompt.value());
  json.Put("worker", group.worker.value());
  json.Key("prompt_tokens");
  json.BeginArray();
  for (const TokenId id : group.prompt_tokens) json.Value(id);
  json.EndArray();
  if (group.greedy_last) json.Put("greedy_last", true);
  json.Key("members");
  json.BeginArray();
  for (const std::optional<Trajectory>& member : group.members) PutMember(json, member);
  json.EndArray();
  if (!group.tools.empty()) PutTools(json, group.tools);
  json.EndObject();
  return out;
}

Result<GroupTrajectories> GroupFromJson(std::string_view text) {
  GroupTrajectories group;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "group") {
      ScanId(scan, group.group);
    } else if (scan.key() == "prompt") {
      ScanId(scan, group.prompt);
    } else if (scan.key() == "worker") {
      ScanId(scan, group.worker);
    } else if (scan.key() == "prompt_tokens") {
      scan.EnterArray();
      while (scan.NextItem()) {
        int64_t id = 0;
        scan.Integer(0, kLargestToken - 1, "", id);
        group.prompt_tokens.push_back(static_cast<TokenId>(id));
      }
    } else if (scan.key() == "greedy_last") {
      scan.Bool(group.greedy_last);
    } else if (scan.key() == "members") {
      scan.EnterArray();
      while (scan.NextItem()) ScanMember(scan, group.members.emplace_back());
    } else if (scan.key() == "tools") {
      ScanTools(scan, group.tools);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!group.tools.empty() && group.tools.size() != group.members.size()) {
    return DataLoss("tools: has ", group.tools.size(), " records of ", group.members.size());
  }
  if (group.greedy_last && group.members.size() < 2) {
    return DataLoss("greedy_last: a group with a greedy member has others");
  }
  return group;
}

std::string InFlightToJson(const GroupInFlight& group) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("group", group.group.value());
  json.Key("responses");
  json.BeginArray();
  for (size_t i = 0; i < group.members.size(); ++i) {
    json.BeginObject();
    json.Put("member", group.members[i]);
    PutResponse(json, group.responses[i]);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return out;
}

Result<GroupInFlight> InFlightFromJson(std::string_view text) {
  GroupInFlight group;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "group") {
      ScanId(scan, group.group);
      continue;
    }
    if (scan.key() != "responses") {
      scan.FailUnknownKey();
      continue;
    }
    scan.EnterArray();
    while (scan.NextItem()) {
      int64_t& member = group.members.emplace_back();
      PartialResponse& response = group.responses.emplace_back();
      scan.EnterObject();
      while (scan.NextKey()) {
        if (scan.key() == "member") {
          scan.Integer(0, kLargest, "", member);
        } else if (!ScanResponseKey(scan, response)) {
          scan.FailUnknownKey();
        }
      }
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  return group;
}

std::string RunToJson(const RunCheckpoint& run) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("format", 1);
  json.Put("step", run.step.step());
  json.Put("served", run.served.step());
  json.Put("time", run.time.count());
  json.Put("part", static_cast<int64_t>(run.step_clock.part));
  json.Put("part_since", run.step_clock.last.count());
  json.Key("parts");
  json.BeginArray();
  for (const Seconds part : run.step_clock.parts) json.Value(part.count());
  json.EndArray();
  json.Put("rescoring", run.rescoring.count());
  json.Put("busy", run.busy.count());
  PutTotals(json, "totals", run.totals);
  PutTotals(json, "step_totals", run.step_totals);
  if (!run.calls.empty()) {
    json.Key("calls");
    json.BeginArray();
    for (const CallInFlight& call : run.calls) {
      json.BeginArray();
      json.Value(call.id.group.value());
      json.Value(call.id.member);
      json.Value(call.made.count());
      json.Value(call.due.count());
      json.EndArray();
    }
    json.EndArray();
  }
  json.Key("record_sizes");
  json.BeginObject();
  for (const auto& [name, size] : run.record_sizes) json.Put(name, size);
  json.EndObject();
  json.EndObject();
  out += '\n';
  return out;
}

Status RunFromJson(std::string_view text, RunCheckpoint& run) {
  JsonScanner scan(text);
  const auto seconds = [&](Seconds& out) {
    double value = 0;
    scan.Real(0, kReal, "", value);
    out = Seconds(value);
  };
  const auto count = [&](int64_t& out) { scan.Integer(0, kLargest, "", out); };
  int64_t format = 0;
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string key(scan.key());
    if (key == "format") {
      scan.Integer(1, 1, "written by another version of pace", format);
    } else if (key == "step") {
      ScanId(scan, run.step);
    } else if (key == "served") {
      ScanId(scan, run.served);
    } else if (key == "time") {
      seconds(run.time);
    } else if (key == "part") {
      int64_t part = 0;
      scan.Integer(0, static_cast<int64_t>(StepPart::kOther), "", part);
      run.step_clock.part = static_cast<StepPart>(part);
    } else if (key == "part_since") {
      seconds(run.step_clock.last);
    } else if (key == "parts") {
      scan.EnterArray();
      for (size_t i = 0; scan.NextItem(); ++i) {
        Seconds value{0};
        seconds(value);
        if (i < run.step_clock.parts.size()) run.step_clock.parts[i] = value;
      }
    } else if (key == "rescoring") {
      seconds(run.rescoring);
    } else if (key == "busy") {
      seconds(run.busy);
    } else if (key == "totals") {
      ScanTotals(scan, run.totals);
    } else if (key == "step_totals") {
      ScanTotals(scan, run.step_totals);
    } else if (key == "calls") {
      ScanCalls(scan, run.calls);
    } else if (key == "record_sizes") {
      scan.EnterObject();
      while (scan.NextKey()) {
        const std::string name(scan.key());
        count(run.record_sizes[name]);
      }
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  return format == 1 ? Status::Ok() : DataLoss("format: missing");
}

}  // namespace pace
