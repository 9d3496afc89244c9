#include "judge/policy_call.h"

#include <limits>

#include "core/json_scanner.h"
#include "core/json_writer.h"

namespace pace {
namespace {

// {"call": NAME, ...}
template <typename Fields>
std::string CallJson(std::string_view name, Fields fields) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("call", name);
  fields(json);
  json.EndObject();
  return out;
}

// Under the names of pace.Group in Python. From the private one it computes waiting staleness.
void PutGroup(JsonWriter& json, const GroupSummary& group) {
  json.Key("group");
  json.BeginObject();
  json.Put("id", group.id.value());
  json.Put("assembled", group.assembled.step());
  json.Put("oldest", group.oldest.step());
  json.Put("num_members", group.num_members);
  json.Put("num_tokens", group.num_tokens);
  json.Put("generation", group.generation);
  json.Put("prefix_score", group.prefix_score);
  json.Put("_completed_sum", group.completed_sum);
  json.EndObject();
}

void ReadReal(JsonScanner& scan, std::optional<double>& value) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  scan.Real(-kLargest, kLargest, "", value.emplace());
}

}  // namespace

std::string BeginStepJson(PolicyVersion step, const PoolView& pool) {
  return CallJson("begin_step", [&](JsonWriter& json) {
    json.Put("step", step.step());
    json.Put("occupancy", pool.occupancy);
    json.Put("batch", pool.batch);
    std::optional<int64_t> served;
    if (pool.served.has_value()) served = pool.served->step();
    json.Put("served", served);
  });
}

std::string JudgeJson(PolicyVersion step, const GroupSummary& group) {
  return CallJson("judge", [&](JsonWriter& json) {
    json.Put("step", step.step());
    PutGroup(json, group);
  });
}

std::string ScoreJson(const GroupSummary& group) {
  return CallJson("score", [&](JsonWriter& json) { PutGroup(json, group); });
}

std::string ObserveJson(const GroupSummary& group, const Decision& decision) {
  return CallJson("observe", [&](JsonWriter& json) {
    PutGroup(json, group);
    json.Key("decision");
    json.BeginObject();
    json.Put("admitted", decision.verdict == Verdict::kAdmit);
    json.Put("reason", Name(decision.reason));
    json.Put("waiting", decision.waiting);
    json.Put("generation", decision.generation);
    json.Put("weight", decision.weight);
    json.Put("score", decision.score);
    json.Put("prefix_score", decision.prefix_score);
    json.Put("percentile", decision.percentile);
    json.EndObject();
  });
}

std::string SaveStateJson() {
  return CallJson("state", [](JsonWriter&) {});
}

std::string RestoreStateJson(std::string_view state) {
  return CallJson("restore", [&](JsonWriter& json) { json.Put("state", state); });
}

Result<PolicyAnswer> ParsePolicyAnswer(std::string_view text) {
  PolicyAnswer answer;
  std::string reason;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string_view key = scan.key();
    if (key == "error" || key == "invalid") {
      answer.fault = key == "error" ? RewardFault::kException : RewardFault::kInvalid;
      scan.Text(answer.fault_message);
    } else if (key == "admit") {
      scan.Bool(answer.admit.emplace());
    } else if (key == "score") {
      ReadReal(scan, answer.score);
    } else if (key == "reason") {
      scan.Text(reason);
    } else if (key == "weight") {
      ReadReal(scan, answer.weight);
    } else if (key == "percentile") {
      ReadReal(scan, answer.percentile);
    } else if (key == "state") {
      scan.Text(answer.state);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  PACE_RETURN_IF_ERROR(scan.status());
  answer.fault_message = OneLine(answer.fault_message);
  if (reason.empty()) return answer;
  answer.reason = ReasonFromName(reason);
  if (!answer.reason.has_value()) {
    answer.fault = RewardFault::kInvalid;
    answer.fault_message = OneLine(Concat("gave the reason ", reason, ", which is none of pace"));
  }
  return answer;
}

}  // namespace pace
