#include "judge/environment_turn.h"

#include <limits>

#include "core/json_scanner.h"
#include "core/json_writer.h"

namespace pace {
namespace {

void PutTurn(JsonWriter& json, const PolicyTurn& turn, int64_t index, bool last) {
  json.BeginObject();
  json.Put("text", turn.text);
  json.Key("calls");
  json.BeginArray();
  for (const auto& [name, arguments] : turn.calls) {
    json.BeginObject();
    json.Put("name", name);
    json.Put("arguments", arguments);
    json.EndObject();
  }
  json.EndArray();
  json.Put("index", index);
  json.Put("last", last);
  json.EndObject();
}

std::pair<std::string, std::string> ReadMessage(JsonScanner& scan) {
  std::pair<std::string, std::string> message;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "role") {
      scan.Text(message.first);
    } else if (scan.key() == "content") {
      scan.Text(message.second);
    } else {
      scan.FailUnknownKey();
    }
  }
  return message;
}

}  // namespace

EnvironmentStep EnvironmentStep::Failed(RewardFault fault, std::string message) {
  EnvironmentStep step;
  step.fault = fault;
  step.fault_message = std::move(message);
  return step;
}

std::string TurnJson(const EnvironmentTurn& turn) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("key", turn.key);
  json.Key("problem");
  json.BeginObject();
  json.Put("id", turn.problem.id);
  json.Put("prompt", turn.problem.prompt);
  json.Put("answer", turn.problem.answer);
  json.Put("data_source", turn.problem.data_source);
  json.Put("ability", turn.problem.ability);
  json.Put("extra_info", turn.problem.extra_info);
  json.EndObject();
  json.Put("state", turn.state);
  json.Put("num_restored", turn.num_restored);
  json.Key("turns");
  json.BeginArray();
  for (size_t i = 0; i < turn.turns.size(); ++i) {
    PutTurn(json, turn.turns[i], static_cast<int64_t>(i), turn.last && i + 1 == turn.turns.size());
  }
  json.EndArray();
  json.EndObject();
  return out;
}

Result<EnvironmentStep> ParseStep(std::string_view text) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  EnvironmentStep step;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string_view key = scan.key();
    if (key == "error" || key == "invalid") {
      step.fault = key == "error" ? RewardFault::kException : RewardFault::kInvalid;
      scan.Text(step.fault_message);
    } else if (key == "observation") {
      scan.Text(step.observation);
    } else if (key == "messages") {
      scan.EnterArray();
      while (scan.NextItem()) step.messages.push_back(ReadMessage(scan));
    } else if (key == "reward") {
      scan.Real(-kLargest, kLargest, "", step.reward.emplace());
    } else if (key == "done") {
      scan.Bool(step.done);
    } else if (key == "correct") {
      scan.Bool(step.correct.emplace());
    } else if (key == "failed") {
      scan.Bool(step.failed);
    } else if (key == "detail") {
      scan.Text(step.detail);
    } else if (key == "state") {
      scan.Text(step.state);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  PACE_RETURN_IF_ERROR(scan.status());
  if (!step.ok()) {
    return EnvironmentStep::Failed(step.fault, OneLine(step.fault_message));
  }
  return step;
}

}  // namespace pace
