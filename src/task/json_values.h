// Values that lines of datasets share: messages, and answers that are text or
// numbers.
//
// Each function reads the scanner's next value; errors are the scanner's.
// Thread-safety: functions of their arguments.
#ifndef PACE_TASK_JSON_VALUES_H_
#define PACE_TASK_JSON_VALUES_H_

#include <optional>
#include <string>
#include <vector>

#include "core/json_scanner.h"
#include "task/problem.h"

namespace pace {

// Text, or a number as text: 72.0 is "72". Any other value is passed over and
// leaves `out` empty.
void ScanTextOrNumber(JsonScanner& scan, std::optional<std::string>& out);

// A list of {"role", "content"}; other keys are passed over. `content` is text or
// a list of parts {"type": "text", "text"}, which are joined.
void ScanMessages(JsonScanner& scan, std::vector<ChatMessage>& out);

// Text, or messages. Any other value is passed over and leaves `out` empty.
void ScanPrompt(JsonScanner& scan, std::optional<Prompt>& out);

}  // namespace pace

#endif  // PACE_TASK_JSON_VALUES_H_
