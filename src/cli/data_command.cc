// pace data show
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "cli/open_policy.h"
#include "config/settings.h"
#include "core/json_writer.h"
#include "execution/prompt_source.h"
#include "task/dataset.h"
#include "task/task.h"

namespace pace {
namespace {

struct DataArguments {
  std::string settings;                // a preset, a YAML file, or a file of problems
  std::vector<std::string> overrides;  // key=value
  int64_t num_problems = 3;
  bool json = false;
};

// Problems in the order of training, and how the model sees them.
struct ShownData {
  std::shared_ptr<const ProblemSource> source;
  std::optional<PromptRenderer> renderer;  // none where no model was named
  PromptFit fit;
};

bool IsDataFile(const std::string& name) {
  return name.ends_with(".jsonl") || name.ends_with(".json") || name.ends_with(".parquet");
}

Result<Settings> SettingsFor(const DataArguments& arguments) {
  if (!IsDataFile(arguments.settings)) return LoadSettings(arguments.settings, arguments.overrides);
  Settings settings;
  settings.task.kind = TaskKind::kDataset;
  settings.task.file = arguments.settings;
  PACE_RETURN_IF_ERROR(ApplyOverrides(settings, arguments.overrides));
  PACE_RETURN_IF_ERROR(settings.Validate());
  return settings;
}

// A file alone names no model: its prompts are then shown without a template.
bool NamesModel(const DataArguments& arguments) {
  if (!IsDataFile(arguments.settings)) return true;
  for (const std::string& assignment : arguments.overrides) {
    if (assignment.starts_with("policy.model=")) return true;
  }
  return false;
}

Result<ShownData> OpenData(const Settings& settings, bool with_model) {
  const auto seed = static_cast<uint64_t>(settings.run.seed);
  if (!with_model) {
    PACE_ASSIGN_OR_RETURN(const DatasetForm form, DatasetFormOf(settings.task));
    PACE_ASSIGN_OR_RETURN(Dataset data, Dataset::Load(settings.task.file, form));
    return ShownData{.source = std::make_shared<DatasetSource>(std::move(data), seed),
                     .renderer = std::nullopt,
                     .fit = {}};
  }
  PACE_ASSIGN_OR_RETURN(const Policy policy, OpenPolicy(settings.policy));
  std::shared_ptr<ToolExecutor> executor;
  if (settings.tools.kind() == ToolUse::kEnvironment) {
    PACE_ASSIGN_OR_RETURN(executor, ToolExecutor::Open(settings.tools));
  }
  PACE_ASSIGN_OR_RETURN(PromptRenderer renderer, MakeRenderer(settings, policy, executor.get()));
  PACE_ASSIGN_OR_RETURN(TrainingProblems problems,
                        MakeTrainingProblems(settings.task, renderer, seed));
  return ShownData{.source = problems.source, .renderer = std::move(renderer), .fit = problems.fit};
}

// A conversation as it stands, a message after its role.
std::string WithoutTemplate(const Prompt& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  std::string out;
  for (const ChatMessage& message : std::get<std::vector<ChatMessage>>(prompt)) {
    out += Concat(out.empty() ? "" : "\n", message.role, ": ", message.content);
  }
  return out;
}

// Control characters must not reach a terminal.
std::string ForTerminal(std::string text) {
  if (isatty(STDOUT_FILENO) == 0) return text;
  for (char& c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    if (control && c != '\n' && c != '\t') c = '?';
  }
  return text;
}

Status ShowOne(const ShownData& data, int64_t index, bool as_json) {
  const Problem problem = data.source->At(PromptIndex(index));
  std::string text = WithoutTemplate(problem.prompt);
  std::optional<int64_t> num_tokens;
  if (data.renderer.has_value()) {
    Result<std::string> rendered = data.renderer->Text(problem.prompt);
    if (!rendered.ok()) return rendered.status().At("problem " + problem.id);
    text = std::move(rendered).value();
    PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, data.renderer->Render(problem));
    num_tokens = static_cast<int64_t>(ids.size());
  }
  if (as_json) {
    std::string line;
    JsonWriter json(line);
    json.BeginObject();
    json.Put("id", problem.id);
    json.Put("prompt", text);
    if (num_tokens.has_value()) json.Put("num_tokens", *num_tokens);
    json.Put("answer", problem.answer);
    json.Put("verifier", Name(problem.verifier));
    json.EndObject();
    std::printf("%s\n", line.c_str());
    return Status::Ok();
  }
  const std::string tokens = num_tokens.has_value() ? Concat(*num_tokens, " tokens, ") : "";
  std::printf(
      "%s%s", index == 0 ? "" : "\n",
      ForTerminal(Concat("--- ", index + 1, ": ", problem.id, ", ", tokens, "answer ",
                         problem.answer, ", verifier ", Name(problem.verifier), "\n", text, "\n"))
          .c_str());
  return Status::Ok();
}

Status ShowData(const DataArguments& arguments) {
  PACE_ASSIGN_OR_RETURN(const Settings settings, SettingsFor(arguments));
  const bool with_model = NamesModel(arguments);
  PACE_ASSIGN_OR_RETURN(const ShownData data, OpenData(settings, with_model));
  const std::optional<int64_t> size = data.source->epoch_size();
  const int64_t count = std::min(arguments.num_problems, size.value_or(arguments.num_problems));
  for (int64_t i = 0; i < count; ++i) {
    PACE_RETURN_IF_ERROR(ShowOne(data, i, arguments.json));
  }
  if (std::fflush(stdout) != 0) return Unavailable("stdout: cannot be written");
  if (size.has_value()) {
    std::fprintf(stderr, "%lld problems in an epoch, the first %lld in the order of training\n",
                 static_cast<long long>(*size), static_cast<long long>(count));
  }
  if (data.fit.num_skipped > 0) {
    std::fprintf(stderr, "%lld prompts are longer than prompt.max_tokens and left out\n",
                 static_cast<long long>(data.fit.num_skipped));
  }
  if (!with_model) {
    std::fprintf(stderr,
                 "without a model: policy.model=DIR shows its chat template and counts tokens\n");
  }
  return Status::Ok();
}

}  // namespace

void AddData(const CommandLine& line) {
  const CommandLine group =
      line.AddGroup(kDataCommand.name, kDataCommand.what, "pace data show smollm2-words -n 1");
  group.Add<DataArguments>(
      "show", "Print prompts exactly as the model sees them",
      "pace data show tiny -n 5\n"
      "  pace data show train.jsonl policy.model=models/smollm2\n"
      "  pace data show train.jsonl task.prompt_key=input task.answer_key=gold",
      [](CLI::App& app, DataArguments& arguments) {
        app.add_option("settings", arguments.settings,
                       "A preset, a YAML file, or a .jsonl file of problems")
            ->required();
        app.add_option("overrides", arguments.overrides, kOverridesHelp);
        app.add_option("-n,--num-problems", arguments.num_problems, "How many")
            ->check(CLI::Range(1, 1000000))
            ->capture_default_str();
        app.add_flag("--json", arguments.json, "One JSON object a line");
      },
      ShowData);
}

}  // namespace pace
