// Hermes tool calls: <tool_call>{"name": ..., "arguments": {...}}</tool_call>
// in what a model wrote.
//
// The rule is that of verl: each opening tag is matched with the next closing
// one, the text between read as Python reads JSON. A call that does not read,
// or has no name (a text) or no arguments, is dropped; its text is removed from
// the content all the same.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TEXT_HERMES_H_
#define PACE_TEXT_HERMES_H_

#include <string>
#include <string_view>
#include <vector>

namespace pace {

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON, as json.dumps with ensure_ascii=False writes it
};

struct HermesMessage {
  std::string content;  // the text without its calls
  std::vector<ToolCall> calls;
};

// `text` is a decode that keeps special tokens.
HermesMessage ParseHermes(std::string_view text);

}  // namespace pace

#endif  // PACE_TEXT_HERMES_H_
