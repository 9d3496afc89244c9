#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "execution/checkpoint.h"

namespace pace {
namespace {

constexpr int64_t kLargest = int64_t{1} << 53;
constexpr int64_t kLargestToken = int64_t{1} << 31;
// 1 kept responses as JSON, without settings and version.
constexpr int64_t kRunFormat = 2;
constexpr double kReal = std::numeric_limits<double>::max();

// The keys of one object: none twice, and of those that must be there none missing.
class KeyCheck {
 public:
  // After NextKey has found one.
  void Take(JsonScanner& scan) {
    if (!seen_.insert(std::string(scan.key())).second) scan.Fail("given twice");
  }
  // After the last one.
  void Require(JsonScanner& scan, std::initializer_list<std::string_view> names) const {
    Require(scan, std::span(names.begin(), names.size()));
  }
  void Require(JsonScanner& scan, std::span<const std::string_view> names) const {
    for (const std::string_view name : names) {
      if (scan.ok() && !seen_.contains(name)) scan.FailField(name, "", "missing");
    }
  }

 private:
  std::set<std::string, std::less<>> seen_;
};

// Log-probs that are not finite were written null.
float ScanFloat(JsonScanner& scan) {
  if (scan.TakeNull()) return -std::numeric_limits<float>::infinity();
  double value = 0;
  scan.Real(-kReal, kReal, "", value);
  return static_cast<float>(value);
}

// [[id, version, logprob, sampled_logprob], ...]; [id, version] where it was given
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
    token.is_tool = field == 2;
    token.id = static_cast<TokenId>(id);
    token.version = PolicyVersion(version);
    tokens.push_back(token);
  }
}

constexpr std::array<std::string_view, 4> kResponseKeys = {"tokens", "prefix_score", "awaits_score",
                                                           "num_interrupts"};

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
    response.paused = static_cast<FinishReason>(reason);
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

void ScanMember(JsonScanner& scan, FinishedTrajectory& member) {
  if (scan.TakeNull()) return;
  Trajectory trajectory;
  KeyCheck keys;
  scan.EnterObject();
  while (scan.NextKey()) {
    keys.Take(scan);
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
  keys.Require(scan, {"reason", "correct", "reward", "completed"});
  keys.Require(scan, kResponseKeys);
  member = std::move(trajectory);
}

// [[calls, failures, seconds], ...]
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
  KeyCheck keys;
  scan.EnterObject();
  while (scan.NextKey()) {
    keys.Take(scan);
    bool known = false;
    for (const auto& [name, value] : TotalFields(totals)) {
      if (scan.key() != name) continue;
      known = true;
      scan.Integer(0, kLargest, "", *value);
      break;
    }
    if (!known) scan.FailUnknownKey();
  }
  for (const auto& [name, value] : TotalFields(totals)) keys.Require(scan, {name});
}

void ScanSizes(JsonScanner& scan, std::map<std::string, int64_t>& sizes) {
  KeyCheck keys;
  scan.EnterObject();
  while (scan.NextKey()) {
    keys.Take(scan);
    const std::string name(scan.key());
    scan.Integer(0, kLargest, "", sizes[name]);
  }
}

// The five parts of a step's time.
void ScanParts(JsonScanner& scan, StepClock::State& clock) {
  size_t count = 0;
  scan.EnterArray();
  for (; scan.NextItem(); ++count) {
    double value = 0;
    scan.Real(0, kReal, "", value);
    if (count < clock.parts.size()) clock.parts[count] = Seconds(value);
  }
  if (count != clock.parts.size()) scan.Fail(Concat("must have ", clock.parts.size(), " items"));
}

}  // namespace

Result<GroupTrajectories> GroupFromJson(std::string_view text) {
  GroupTrajectories group;
  JsonScanner scan(text);
  KeyCheck keys;
  scan.EnterObject();
  while (scan.NextKey()) {
    keys.Take(scan);
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
  keys.Require(scan, {"group", "prompt", "worker", "prompt_tokens", "members"});
  scan.End();
  if (!scan.ok()) return scan.status();
  PACE_RETURN_IF_ERROR(CheckShape(group));
  return group;
}

Result<GroupInFlight> InFlightFromJson(std::string_view text) {
  GroupInFlight group;
  JsonScanner scan(text);
  KeyCheck keys;
  scan.EnterObject();
  while (scan.NextKey()) {
    keys.Take(scan);
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
      KeyCheck response_keys;
      scan.EnterObject();
      while (scan.NextKey()) {
        response_keys.Take(scan);
        if (scan.key() == "member") {
          scan.Integer(0, kLargest, "", member);
        } else if (!ScanResponseKey(scan, response)) {
          scan.FailUnknownKey();
        }
      }
      response_keys.Require(scan, {"member"});
      response_keys.Require(scan, kResponseKeys);
    }
  }
  keys.Require(scan, {"group", "responses"});
  scan.End();
  if (!scan.ok()) return scan.status();
  return group;
}

std::string RunToJson(const RunCheckpoint& run) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("format", kRunFormat);
  json.Put("pace", run.version);
  json.Put("commit", run.commit);
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
  int64_t format = 0;
  KeyCheck keys;
  scan.EnterObject();
  while (scan.NextKey()) {
    keys.Take(scan);
    const std::string key(scan.key());
    if (key == "format") {
      scan.Integer(1, kRunFormat, "written by another version of pace", format);
    } else if (key == "pace") {
      scan.Text(run.version);
    } else if (key == "commit") {
      scan.Text(run.commit);
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
      ScanParts(scan, run.step_clock);
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
      ScanSizes(scan, run.record_sizes);
    } else {
      scan.FailUnknownKey();
    }
  }
  keys.Require(scan, {"format", "step", "served", "time", "part", "part_since", "parts",
                      "rescoring", "totals", "step_totals", "record_sizes"});
  if (format >= 2) keys.Require(scan, {"pace", "commit"});
  scan.End();
  return scan.status();
}

}  // namespace pace
