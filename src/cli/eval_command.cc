// pace eval
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "cli/open_policy.h"
#include "config/settings.h"
#include "core/atomic_file.h"
#include "core/json_writer.h"
#include "execution/evaluator.h"
#include "execution/run.h"
#include "rollout/request.h"
#include "terminal/progress.h"
#include "terminal/terminal_text.h"

namespace pace {
namespace {

struct EvalArguments {
  std::string settings;
  std::vector<std::string> overrides;
  std::string out;    // a folder for scores and responses; empty = none
  bool json = false;  // also on a terminal
};

std::string ScoreLine(const BenchmarkScore& score) {
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
  if (score.greedy.has_value()) json.Put("greedy", *score.greedy);
  json.Put("length", score.mean_length);
  json.Put("truncated", score.truncated);
  if (score.mean_turns.has_value()) {
    json.Put("turns", *score.mean_turns);
    json.Put("tool_calls", *score.mean_calls);
    json.Put("tool_success", score.call_success);
  }
  json.EndObject();
  return line + "\n";
}

void AppendResponse(const EvaluatedResponse& response, std::string& out) {
  JsonWriter json(out);
  json.BeginObject();
  const ResponseRecord& record = response.record;
  json.Put("benchmark", record.benchmark);
  json.Put("problem", response.problem.id);
  json.Put("member", record.head.member);
  json.Put("correct", record.correct);
  json.Put("score", record.head.reward);
  json.Put("extracted", record.extracted);
  json.Put("answer", record.answer);
  json.Put("num_tokens", record.length);
  json.Put("truncated", record.finish == FinishReasonName(FinishReason::kMaxTokens));
  json.Put("response", response.text);
  json.EndObject();
  out += '\n';
}

void PrintTable(const std::vector<BenchmarkScore>& scores) {
  TextTable table({"benchmark", "problems", "k", "mean@k", "+-", "pass@k", "majority@k", "tokens",
                   "truncated"});
  const auto percent = [](double share) { return TextTable::Fixed(100 * share, 1) + " %"; };
  for (const BenchmarkScore& score : scores) {
    table.Add({score.name, Concat(score.num_problems), Concat(score.num_responses),
               percent(score.mean), percent(score.mean_half_width), percent(score.pass),
               percent(score.majority), TextTable::Fixed(score.mean_length, 1),
               percent(score.truncated)});
  }
  std::fputs(table.Render().c_str(), stdout);
}

// Where --out keeps responses as they come.
Result<std::optional<AtomicFile>> OpenResponses(const std::string& folder) {
  if (folder.empty()) return std::optional<AtomicFile>();
  PACE_RETURN_IF_ERROR(CreateFolders(folder));
  if (Files::Default().Exists(folder + "/scores.jsonl")) {
    return InvalidArgument("--out ", folder, ": holds an evaluation already (name another folder)");
  }
  PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(folder + "/responses.jsonl"));
  return std::optional(std::move(file));
}

Status Keep(const std::string& folder, AtomicFile& responses, const std::string& scores) {
  PACE_RETURN_IF_ERROR(responses.Commit());
  return WriteFileAtomically(folder + "/scores.jsonl", scores);
}

Status RunEval(const EvalArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const Settings settings,
                        LoadSettings(arguments.settings, arguments.overrides));
  PACE_ASSIGN_OR_RETURN(const Policy policy, OpenPolicy(settings.policy));
  PACE_ASSIGN_OR_RETURN(std::shared_ptr<ToolExecutor> executor, ToolExecutor::Open(settings.tools));
  PACE_ASSIGN_OR_RETURN(std::shared_ptr<RewardPool> rewards, OpenRewards(settings));
  PACE_ASSIGN_OR_RETURN(Evaluator evaluator,
                        Evaluator::Create(settings, policy, executor, std::move(rewards)));
  if (evaluator.empty()) {
    return InvalidArgument("task.benchmarks = []: nothing to evaluate on (name benchmark files)");
  }
  PACE_ASSIGN_OR_RETURN(std::optional<AtomicFile> responses, OpenResponses(arguments.out));
  Status kept;
  Evaluator::ResponseSink sink;
  if (responses.has_value()) {
    sink = [&](const EvaluatedResponse& response) {
      std::string line;
      AppendResponse(response, line);
      if (kept.ok()) kept = responses->Append(line);
    };
  }
  PACE_ASSIGN_OR_RETURN(const std::vector<BenchmarkScore> scores, [&] {
    Progress progress("evaluating", "responses", 1);
    return evaluator.Run(
        policy.weights,
        [&progress](int64_t done, int64_t total) { progress.Update(0, done, total); }, sink);
  }());
  PACE_RETURN_IF_ERROR(kept);
  std::string lines;
  for (const BenchmarkScore& score : scores) lines += ScoreLine(score);
  if (arguments.json || isatty(STDOUT_FILENO) == 0) {
    std::fputs(lines.c_str(), stdout);
  } else {
    PrintTable(scores);
  }
  if (!responses.has_value()) return Status::Ok();
  PACE_RETURN_IF_ERROR(Keep(arguments.out, *responses, lines));
  std::fprintf(stderr, "responses: %s/responses.jsonl\n", arguments.out.c_str());
  return Status::Ok();
}

}  // namespace

void AddEval(const CommandLine& line) {
  line.Add<EvalArguments>(
      kEvalCommand.name, kEvalCommand.what,
      "pace eval tiny evaluation.num_responses=8\n"
      "  pace eval tiny policy.model=runs/tiny/checkpoints/step-000080 "
      "--out runs/eval",
      [](CLI::App& app, EvalArguments& arguments) {
        app.add_option("settings", arguments.settings, kSettingsHelp)->required();
        app.add_option("overrides", arguments.overrides, kOverridesHelp);
        app.add_option("--out", arguments.out,
                       "A new folder for scores.jsonl and responses.jsonl: every response with its "
                       "problem and verdict");
        app.add_flag("--json", arguments.json,
                     "JSON Lines, also on a terminal (elsewhere they always are)");
      },
      RunEval);
}

}  // namespace pace
