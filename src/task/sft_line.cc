#include "task/sft_line.h"

#include <optional>
#include <utility>

#include "core/json_scanner.h"
#include "core/printable.h"
#include "task/json_values.h"
#include "task/line_file.h"
#include "task/problem.h"

namespace pace {
namespace {

using Messages = std::vector<ChatMessage>;

struct Seen {
  std::optional<Prompt> prompt, completion, problem, solution, messages;
};

Status ScanLine(std::string_view line, const TaskOptions& task, Seen& seen) {
  const auto is = [](std::string_view key, std::string_view named, std::string_view known) {
    return key == (named.empty() ? known : named);
  };
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string_view key = scan.key();
    std::optional<Prompt>* const out = is(key, task.prompt_key, "prompt")       ? &seen.prompt
                                       : is(key, task.answer_key, "completion") ? &seen.completion
                                       : key == "messages"                      ? &seen.messages
                                       : key == "problem" || key == "question"  ? &seen.problem
                                       : key == "solution"                      ? &seen.solution
                                                                                : nullptr;
    if (out == nullptr) {
      scan.Skip();
    } else {
      ScanPrompt(scan, *out);
    }
  }
  scan.End();
  return scan.status();
}

// What the model is to say: text, or one assistant message.
Result<std::string> SaidBy(const Prompt& completion) {
  if (const auto* text = std::get_if<std::string>(&completion)) return *text;
  const Messages& messages = std::get<Messages>(completion);
  if (messages.size() == 1 && messages[0].role == "assistant") return messages[0].content;
  return InvalidArgument("completion: must be text or one assistant message");
}

Result<std::vector<SftExample>> OfConversation(const Messages& messages) {
  std::vector<SftExample> examples;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role != "assistant") continue;
    if (i == 0) return InvalidArgument("messages[0]: must not be the assistant's");
    const auto end = messages.begin() + static_cast<std::ptrdiff_t>(i);
    examples.push_back({Messages(messages.begin(), end), {messages[i].content}});
  }
  if (examples.empty()) return InvalidArgument("messages: must hold an assistant message");
  return examples;
}

bool IsText(const std::optional<Prompt>& value) {
  return value.has_value() && std::holds_alternative<std::string>(*value);
}

}  // namespace

Result<std::vector<SftExample>> ParseSftLine(std::string_view line, const TaskOptions& task) {
  Seen seen;
  PACE_RETURN_IF_ERROR(ScanLine(line, task, seen));
  if (seen.prompt.has_value() && seen.completion.has_value()) {
    PACE_ASSIGN_OR_RETURN(std::string said, SaidBy(*seen.completion));
    return std::vector<SftExample>{{std::move(*seen.prompt), {std::move(said)}}};
  }
  if (!task.prompt_key.empty() || !task.answer_key.empty()) {
    return InvalidArgument(
        "needs '", Printable(task.prompt_key.empty() ? "prompt" : task.prompt_key), "' and '",
        Printable(task.answer_key.empty() ? "completion" : task.answer_key),
        "' (task.prompt_key, task.answer_key)");
  }
  if (seen.messages.has_value() && std::holds_alternative<Messages>(*seen.messages)) {
    return OfConversation(std::get<Messages>(*seen.messages));
  }
  if (IsText(seen.problem) && IsText(seen.solution)) {
    return std::vector<SftExample>{
        {FillPromptTemplate(task.prompt_template, std::get<std::string>(*seen.problem)),
         {std::get<std::string>(*seen.solution)}}};
  }
  return InvalidArgument(
      "needs 'messages', or 'prompt' and 'completion', or 'problem' and 'solution'");
}

Result<std::vector<SftExample>> ReadSftExamples(const TaskOptions& task) {
  if (task.file.empty()) {
    return InvalidArgument("task.sources: supervised examples are read from one file (task.file)");
  }
  std::vector<SftExample> examples;
  const auto take = [&](std::string_view line, int64_t number) -> Status {
    Result<std::vector<SftExample>> parsed = ParseSftLine(line, task);
    if (!parsed.ok()) return parsed.status().At(Concat(task.file, ":", number));
    for (SftExample& example : *parsed) examples.push_back(std::move(example));
    return Status::Ok();
  };
  PACE_RETURN_IF_ERROR(ReadLines(task.file, task.python, take));
  if (examples.empty()) return InvalidArgument(task.file, ": holds no example");
  return examples;
}

}  // namespace pace
