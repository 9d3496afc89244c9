#include "inference/prompt_line.h"

#include <limits>
#include <utility>

#include "text/python_text.h"

namespace pace {

bool ScanTokenIds(JsonScanner& scan, std::vector<TokenId>& out) {
  out.clear();
  scan.EnterArray();
  while (scan.NextItem()) {
    int64_t id = 0;
    scan.Integer(0, std::numeric_limits<TokenId>::max(), "", id);
    out.push_back(static_cast<TokenId>(id));
  }
  return scan.ok();
}

Result<PromptLine> ParsePromptLine(std::string_view line) {
  PromptLine prompt;
  bool has_messages = false;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "ids") {
      ScanTokenIds(scan, prompt.ids.emplace());
    } else if (scan.key() == "text") {
      scan.Text(prompt.text.emplace());
    } else {
      has_messages = has_messages || scan.key() == "messages";
      scan.Skip();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  const int count = (prompt.ids ? 1 : 0) + (prompt.text ? 1 : 0) + (has_messages ? 1 : 0);
  if (count != 1) return InvalidArgument("needs 'ids', 'text' or 'messages', one of them");
  if (!has_messages) return prompt;

  PACE_ASSIGN_OR_RETURN(const Value value, ParsePythonJson(line));
  const Value* const messages = value.dict().Find("messages");
  if (messages == nullptr || !messages->is_list()) {
    return InvalidArgument("messages: must be a list");
  }
  prompt.messages = *messages;
  const Value* const tools = value.dict().Find("tools");
  if (tools != nullptr && !tools->is_none()) prompt.tools = *tools;
  return prompt;
}

}  // namespace pace
