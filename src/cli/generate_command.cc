// pace generate
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "cli/chat.h"
#include "cli/commands.h"
#include "config/task_options.h"
#include "inference/generate_lines.h"
#include "inference/generation.h"
#include "task/prompt_renderer.h"

namespace pace {
namespace {

// Sequences that share a pass; more would make each of them slow.
constexpr int64_t kMaxRunning = 128;

Status GenerateLines(const GenerateArguments& arguments, ModelTexts& texts) {
  PACE_ASSIGN_OR_RETURN(LineInput input, LineInput::Open(arguments.file));
  PACE_ASSIGN_OR_RETURN(ReadyModel model, LoadReadyModel(arguments.inference, kMaxRunning));
  std::optional<Tokenizer> tokenizer;
  if (texts.tokenizer().ok()) tokenizer = *texts.tokenizer();
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> engine,
                        EngineFor(std::move(model), std::move(tokenizer), kMaxRunning));
  LineGenerator lines(arguments.generation, texts, input, *engine);
  const auto begin = std::chrono::steady_clock::now();
  PACE_RETURN_IF_ERROR(lines.Run());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  const auto num_tokens = static_cast<double>(lines.num_tokens());
  std::fprintf(stderr, "%lld responses, %.0f tokens in %.2f s: %.1f tokens/s\n",
               static_cast<long long>(lines.num_responses()), num_tokens, elapsed.count(),
               elapsed.count() > 0 ? num_tokens / elapsed.count() : 0);
  return Status::Ok();
}

// The same rules as for training prompts.
Result<ValueDict> VariablesOf(const GenerateArguments& arguments) {
  PromptOptions options;
  options.template_variables = arguments.template_variables;
  if (arguments.thinking != "auto") {
    options.thinking = arguments.thinking == "on" ? Thinking::kOn : Thinking::kOff;
  }
  PACE_RETURN_IF_ERROR(options.Validate());
  return TemplateVariables(options);
}

Status Generate(const GenerateArguments& arguments) {
  PACE_RETURN_IF_ERROR(arguments.generation.Validate());
  PACE_ASSIGN_OR_RETURN(ValueDict variables, VariablesOf(arguments));
  ModelTexts texts(arguments.inference.model, std::move(variables));
  const bool reads_stdin = arguments.file.empty();
  const bool chat = arguments.chat || (reads_stdin && isatty(STDIN_FILENO) != 0);
  if (!chat) {
    if (!arguments.system.empty()) {
      return InvalidArgument("--system goes with a chat (give {\"messages\"} lines otherwise)");
    }
    return GenerateLines(arguments, texts);
  }
  if (!reads_stdin) {
    return InvalidArgument("--chat reads from the terminal, not from ", arguments.file);
  }
  if (arguments.generation.num_responses != 1) {
    return InvalidArgument("--num-responses ", arguments.generation.num_responses,
                           ": a chat has one reply");
  }
  PACE_ASSIGN_OR_RETURN(ReadyModel model, LoadReadyModel(arguments.inference, 1));
  return RunChat({.generation = arguments.generation, .system = arguments.system}, texts,
                 std::move(model));
}

}  // namespace

int RunGenerateCommand(const GenerateArguments& arguments) {
  const Status status = Generate(arguments);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace pace
