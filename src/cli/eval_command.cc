// pace eval
#include <cstdio>

#include "cli/commands.h"
#include "cli/open_policy.h"
#include "cli/progress.h"
#include "config/settings.h"
#include "core/json_writer.h"
#include "execution/evaluator.h"

namespace pace {
namespace {

Status RunEval(const EvalArguments& arguments) {
  const Result<Settings> settings = LoadSettings(arguments.settings, arguments.overrides);
  if (!settings.ok()) return settings.status();
  const Result<Policy> policy = OpenPolicy(settings->policy);
  if (!policy.ok()) return policy.status();
  Result<std::shared_ptr<ToolDesk>> desk = ToolDesk::Open(settings->tools);
  if (!desk.ok()) return desk.status();
  Result<Evaluator> evaluator = Evaluator::Create(*settings, *policy, *desk);
  if (!evaluator.ok()) return evaluator.status();
  if (evaluator->empty()) {
    return InvalidArgument("task.benchmarks = []: nothing to evaluate on (name benchmark files)");
  }
  Result<std::vector<BenchmarkScore>> scores = [&] {
    Progress progress("evaluating", "responses", 1);
    return evaluator->Run(policy->weights, [&progress](int64_t done, int64_t total) {
      progress.Update(0, done, total);
    });
  }();
  if (!scores.ok()) return scores.status();
  for (const BenchmarkScore& score : *scores) {
    std::string line;
    JsonWriter json(line);
    json.BeginObject();
    json.Put("benchmark", score.name);
    json.Put("num_problems", score.num_problems);
    json.Put("num_responses", score.num_responses);
    json.Put("mean", score.mean);
    json.Put("mean_half_width", score.mean_half_width);
    json.Put("pass", score.pass);
    json.Put("majority", score.majority);
    json.Put("length", score.mean_length);
    json.Put("truncated", score.truncated);
    if (score.mean_turns.has_value()) {
      json.Put("turns", *score.mean_turns);
      json.Put("tool_calls", *score.mean_calls);
      json.Put("tool_success", score.call_success);
    }
    json.EndObject();
    std::printf("%s\n", line.c_str());
  }
  return Status::Ok();
}

}  // namespace

int RunEvalCommand(const EvalArguments& arguments) {
  const Status status = RunEval(arguments);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace pace
