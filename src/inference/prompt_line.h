// PromptLine: one line of input that a model is asked about.
//
//   {"ids": [1, 2]}            used as they are, never tokenized again
//   {"text": "Once upon"}      encoded, with the tokens that begin a text
//   {"messages": [...], "tools": [...]?}   rendered by the chat template
//
// One of the three; other keys are passed over.
// Thread-safety: values and pure functions.
#ifndef PACE_INFERENCE_PROMPT_LINE_H_
#define PACE_INFERENCE_PROMPT_LINE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_scanner.h"
#include "core/status.h"
#include "core/token_id.h"
#include "text/value.h"

namespace pace {

struct PromptLine {
  std::optional<std::vector<TokenId>> ids;
  std::optional<std::string> text;
  std::optional<Value> messages;
  std::optional<Value> tools;
};

Result<PromptLine> ParsePromptLine(std::string_view line);

// An array of token ids, for other readers of lines.
bool ScanTokenIds(JsonScanner& scan, std::vector<TokenId>& out);

}  // namespace pace

#endif  // PACE_INFERENCE_PROMPT_LINE_H_
