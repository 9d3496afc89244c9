// pace generate
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "cli/command.h"
#include "config/task_options.h"
#include "inference/conversation.h"
#include "inference/generate_lines.h"
#include "task/prompt_renderer.h"

namespace pace {
namespace {

struct GenerateArguments {
  InferenceArguments inference;
  GenerationOptions generation;
  std::string file;  // empty = stdin
  bool chat = false;
  std::string system;
  std::string thinking = "auto";                // prompt.thinking
  std::vector<std::string> template_variables;  // prompt.template_variables
};

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

void AddGenerate(const CommandLine& line) {
  line.Add<GenerateArguments>(
      "generate", "Generate text: a chat in the terminal, or JSON Lines in and out",
      "pace generate --model models/smollm2\n"
      "  echo '{\"text\": \"Once upon\"}' | pace generate --model models/stories --greedy",
      [](CLI::App& app, GenerateArguments& arguments) {
        GenerationOptions& options = arguments.generation;
        AddInferenceFlags(app, arguments.inference);
        app.add_option("file", arguments.file,
                       "Lines of {\"ids\"}, {\"text\"} or {\"messages\"} (default: stdin; from a "
                       "terminal: a chat)");
        CLI::Option* greedy = app.add_flag_callback(
            "--greedy", [&options] { options.sampling.temperature = 0; },
            "Take the likeliest token");
        app.add_option("--temperature", options.sampling.temperature, "0 = greedy")
            ->excludes(greedy)
            ->capture_default_str();
        app.add_option("--top-k", options.sampling.top_k, "Keep the k likeliest tokens; 0 = all");
        app.add_option("--top-p", options.sampling.top_p,
                       "Keep the likeliest tokens that make up this share; 1 = all");
        app.add_option("--min-p", options.sampling.min_p,
                       "Keep tokens this likely, as a share of the likeliest; 0 = all");
        app.add_option("--seed", options.seed, "Same seed, same text")->capture_default_str();
        app.add_option("--num-responses", options.num_responses, "Responses to each prompt")
            ->capture_default_str();
        app.add_option("--max-tokens", options.max_tokens,
                       "Tokens of a response at most (default: 512, less where the model's "
                       "positions end)");
        app.add_flag("--ignore-eos", options.ignore_eos,
                     "Continue after the token that ends a text");
        app.add_option("--stop", options.stop_strings,
                       "A text that ends a response; give it again for more")
            ->allow_extra_args(false);
        app.add_flag("--chat", arguments.chat, "A chat, also where stdin is no terminal");
        app.add_option("--system", arguments.system, "A system message for the chat");
        app.add_option("--thinking", arguments.thinking,
                       "The chat template's enable_thinking: on, off or auto (undefined)")
            ->check(CLI::IsMember({"auto", "on", "off"}))
            ->capture_default_str();
        app.add_option("--template-variable", arguments.template_variables,
                       "NAME=VALUE for the chat template (JSON, else text); give it again for more")
            ->allow_extra_args(false);
      },
      Generate);
}

}  // namespace pace
