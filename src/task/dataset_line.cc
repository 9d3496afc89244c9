#include "task/dataset_line.h"

#include <functional>
#include <map>
#include <utility>

#include "core/json_scanner.h"
#include "core/printable.h"
#include "task/json_values.h"
#include "text/python_text.h"

namespace pace {
namespace {

using Kind = JsonScanner::Kind;

constexpr std::string_view kGroundTruth = "reward_model.ground_truth";

// The kinds of a line's values, by key.
using Kinds = std::map<std::string, Kind, std::less<>>;

Status ScanKinds(std::string_view line, Kinds& out) {
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    out[std::string(scan.key())] = scan.NextKind();
    scan.Skip();
  }
  scan.End();
  return scan.status();
}

bool Has(const Kinds& kinds, std::string_view key, std::initializer_list<Kind> of) {
  const auto found = kinds.find(key);
  if (found == kinds.end()) return false;
  for (const Kind kind : of) {
    if (found->second == kind) return true;
  }
  return false;
}

// The keys that a line's prompt and answer stand under.
Result<DatasetKeys> KeysOf(const Kinds& kinds, DatasetKeys keys) {
  const bool verl = Has(kinds, "prompt", {Kind::kArray}) && kinds.contains("reward_model");
  if (keys.prompt.empty() && verl) keys.prompt = "prompt";
  if (keys.prompt.empty()) {
    if (Has(kinds, "problem", {Kind::kText})) {
      keys.prompt = "problem";
    } else if (Has(kinds, "question", {Kind::kText})) {
      keys.prompt = "question";
    } else if (Has(kinds, "prompt", {Kind::kText, Kind::kArray})) {
      keys.prompt = "prompt";
    } else if (Has(kinds, "messages", {Kind::kArray})) {
      keys.prompt = "messages";
    } else {
      return InvalidArgument(
          "needs a prompt: 'problem', 'question' or 'prompt' (text), or 'prompt' or 'messages' (a "
          "list of messages); task.prompt_key names another key");
    }
  }
  if (keys.answer.empty()) {
    const bool answer = Has(kinds, "answer", {Kind::kText, Kind::kNumber});
    const bool truth = Has(kinds, "reward_model", {Kind::kObject});
    keys.answer = truth && (verl || !answer) ? kGroundTruth : "answer";
  }
  return keys;
}

// Everything a line says that we use.
struct Seen {
  std::optional<std::string> id, answer, index, data_source, ability;
  std::optional<Prompt> prompt;
};

// What is read under a name, "key" or "object.key".
struct NamedReader {
  std::string_view name;
  std::function<void(JsonScanner&)> read;
};

// Reads the value of the key that the scanner stands at; `object` is the name of
// the object it is in, with its dot.
void ReadNamed(JsonScanner& scan, const std::vector<NamedReader>& readers,
               std::string_view object) {
  const std::string name = Concat(object, scan.key());
  bool is_object = false;
  for (const NamedReader& reader : readers) {
    if (reader.name == name) return reader.read(scan);
    is_object |= object.empty() && reader.name.starts_with(name + ".");
  }
  if (!is_object || scan.NextKind() != Kind::kObject) {
    scan.Skip();
    return;
  }
  scan.EnterObject();
  while (scan.NextKey()) ReadNamed(scan, readers, name + ".");
}

Status ScanLine(std::string_view line, const DatasetKeys& keys, Seen& seen) {
  const auto into = [](std::optional<std::string>& out) {
    return [&out](JsonScanner& scan) { ScanTextOrNumber(scan, out); };
  };
  const std::vector<NamedReader> readers = {
      {keys.prompt, [&](JsonScanner& scan) { ScanPrompt(scan, seen.prompt); }},
      {keys.answer, into(seen.answer)},
      {"id", into(seen.id)},
      {"extra_info.index", into(seen.index)},
      {"data_source", into(seen.data_source)},
      {"ability", into(seen.ability)},
  };
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) ReadNamed(scan, readers, "");
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

// The JSON under `extra_info`, as Python writes it.
std::string ExtraInfo(std::string_view line) {
  const Result<Value> whole = ParsePythonJson(line);
  if (!whole.ok() || !whole->is_dict()) return "";
  const Value* const info = whole->dict().Find("extra_info");
  if (info == nullptr) return "";
  Result<std::string> text = ToPythonJson(*info);
  return text.ok() ? std::move(text).value() : "";
}

Status CheckSeen(const Seen& seen, const DatasetKeys& keys) {
  if (!seen.prompt.has_value()) {
    return InvalidArgument("needs '", Printable(keys.prompt), "', text or a list of messages");
  }
  if (const auto* text = std::get_if<std::string>(&*seen.prompt); text != nullptr) {
    if (text->empty()) return InvalidArgument(Printable(keys.prompt), " = \"\": must not be empty");
  } else if (std::get<std::vector<ChatMessage>>(*seen.prompt).empty()) {
    return InvalidArgument(Printable(keys.prompt), ": must hold at least one message");
  }
  if (!seen.answer.has_value()) {
    return keys.answer == kGroundTruth
               ? InvalidArgument("reward_model: needs 'ground_truth', text or a number")
               : InvalidArgument("needs '", Printable(keys.answer), "', text or a number");
  }
  if (seen.answer->empty()) return InvalidArgument("the answer is empty: must be given");
  return Status::Ok();
}

}  // namespace

Result<DatasetLine> ParseDatasetLine(std::string_view line, const DatasetKeys& given) {
  Kinds kinds;
  PACE_RETURN_IF_ERROR(ScanKinds(line, kinds));
  PACE_ASSIGN_OR_RETURN(const DatasetKeys keys, KeysOf(kinds, given));
  Seen seen;
  PACE_RETURN_IF_ERROR(ScanLine(line, keys, seen));
  if (keys.prompt == "question" && seen.answer.has_value()) {
    seen.answer = AnswerOfGsm8k(*seen.answer);
  }
  PACE_RETURN_IF_ERROR(CheckSeen(seen, keys));
  return DatasetLine{.id = seen.id.has_value() ? std::move(seen.id) : std::move(seen.index),
                     .prompt = std::move(*seen.prompt),
                     .answer = std::move(*seen.answer),
                     .data_source = seen.data_source.value_or(""),
                     .ability = seen.ability.value_or(""),
                     .extra_info = kinds.contains("extra_info") ? ExtraInfo(line) : ""};
}

}  // namespace pace
