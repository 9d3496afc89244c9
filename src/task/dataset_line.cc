#include "task/dataset_line.h"

#include <cmath>

#include "core/json_scanner.h"

namespace pace {
namespace {

using Kind = JsonScanner::Kind;

// Whole numbers up to here are exact in a double.
constexpr double kLargestNumber = 9007199254740992.0;

// Everything a line may say that we use.
struct Seen {
  std::optional<std::string> id, problem, question, answer, ground_truth, index;
  std::optional<std::string> data_source, ability;
  std::optional<std::vector<ChatMessage>> messages;
  bool reward_model = false;
};

// A value of any other kind is passed over: whether the key was needed is only
// known at the end of the line.
void ScanText(JsonScanner& scan, std::optional<std::string>& out) {
  if (scan.NextKind() != Kind::kText) {
    scan.Skip();
    return;
  }
  std::string text;
  if (scan.Text(text)) out = std::move(text);
}

void ScanTextOrNumber(JsonScanner& scan, std::optional<std::string>& out) {
  if (scan.NextKind() != Kind::kNumber) return ScanText(scan, out);
  double number = 0;
  if (!scan.Real(-kLargestNumber, kLargestNumber, "write longer numbers as text", number)) return;
  const bool whole = std::floor(number) == number;
  out = whole ? Concat(static_cast<int64_t>(number)) : Concat(number);
}

void ScanMessage(JsonScanner& scan, ChatMessage& message) {
  std::optional<std::string> role, content;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "role") {
      ScanText(scan, role);
    } else if (scan.key() == "content") {
      ScanText(scan, content);
    } else {
      scan.Skip();
    }
  }
  if (!scan.ok()) return;
  if (!role.has_value() || !content.has_value()) {
    scan.Fail("needs 'role' and 'content', both text");
    return;
  }
  message = {.role = std::move(*role), .content = std::move(*content)};
}

void ScanMessages(JsonScanner& scan, std::optional<std::vector<ChatMessage>>& out) {
  if (scan.NextKind() != Kind::kArray) {
    scan.Skip();
    return;
  }
  std::vector<ChatMessage>& messages = out.emplace();
  scan.EnterArray();
  while (scan.NextItem()) ScanMessage(scan, messages.emplace_back());
}

// The one key of interest in an object; null or any other value has none.
void ScanMember(JsonScanner& scan, std::string_view name, std::optional<std::string>& out) {
  if (scan.NextKind() != Kind::kObject) {
    scan.Skip();
    return;
  }
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == name) {
      ScanTextOrNumber(scan, out);
    } else {
      scan.Skip();
    }
  }
}

Status ScanLine(std::string_view line, Seen& seen) {
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string_view key = scan.key();
    if (key == "id") {
      ScanTextOrNumber(scan, seen.id);
    } else if (key == "problem") {
      ScanText(scan, seen.problem);
    } else if (key == "question") {
      ScanText(scan, seen.question);
    } else if (key == "answer") {
      ScanTextOrNumber(scan, seen.answer);
    } else if (key == "prompt") {
      ScanMessages(scan, seen.messages);
    } else if (key == "reward_model") {
      seen.reward_model = true;
      ScanMember(scan, "ground_truth", seen.ground_truth);
    } else if (key == "extra_info") {
      ScanMember(scan, "index", seen.index);
    } else if (key == "data_source") {
      ScanText(scan, seen.data_source);
    } else if (key == "ability") {
      ScanText(scan, seen.ability);
    } else {
      scan.Skip();
    }
  }
  scan.End();
  return scan.status();
}

std::string AnswerOfGsm8k(std::string_view solution) {
  constexpr std::string_view kMarker = "####";
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t marker = solution.rfind(kMarker);
  if (marker == std::string_view::npos) return std::string(solution);
  std::string answer;
  for (const char c : solution.substr(marker + kMarker.size())) {
    if (c != ',') answer += c;
  }
  answer.erase(0, answer.find_first_not_of(kSpace));
  answer.erase(answer.find_last_not_of(kSpace) + 1);
  return answer;
}

Result<DatasetLine> VerlLine(Seen seen) {
  if (seen.messages->empty()) return InvalidArgument("prompt: must hold at least one message");
  if (!seen.ground_truth.has_value()) {
    return InvalidArgument("reward_model: needs 'ground_truth', text or a number");
  }
  DatasetLine line;
  line.id = seen.id.has_value() ? std::move(seen.id) : std::move(seen.index);
  line.prompt = std::move(*seen.messages);
  line.answer = std::move(*seen.ground_truth);
  return line;
}

Result<DatasetLine> PlainLine(Seen seen) {
  if (!seen.problem.has_value() && !seen.question.has_value()) {
    return InvalidArgument(
        "needs 'problem' and 'answer', or 'prompt' (a list of messages) and 'reward_model'");
  }
  if (!seen.answer.has_value()) return InvalidArgument("needs 'answer', text or a number");
  DatasetLine line;
  line.id = std::move(seen.id);
  if (seen.problem.has_value()) {
    line.prompt = std::move(*seen.problem);
    line.answer = std::move(*seen.answer);
  } else {
    line.prompt = std::move(*seen.question);
    line.answer = AnswerOfGsm8k(*seen.answer);
  }
  if (std::get<std::string>(line.prompt).empty()) {
    return InvalidArgument(seen.problem.has_value() ? "problem" : "question",
                           " = \"\": must not be empty");
  }
  return line;
}

}  // namespace

Result<DatasetLine> ParseDatasetLine(std::string_view line) {
  Seen seen;
  PACE_RETURN_IF_ERROR(ScanLine(line, seen));
  const std::string data_source = seen.data_source.value_or("");
  const std::string ability = seen.ability.value_or("");
  const bool verl = seen.messages.has_value() && seen.reward_model;
  Result<DatasetLine> parsed = verl ? VerlLine(std::move(seen)) : PlainLine(std::move(seen));
  if (!parsed.ok()) return parsed;
  if (parsed->answer.empty()) return InvalidArgument("the answer is empty: must be given");
  parsed->data_source = data_source;
  parsed->ability = ability;
  return parsed;
}

}  // namespace pace
