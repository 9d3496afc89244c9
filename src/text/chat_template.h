// ChatTemplate renders a conversation as the text that a model was trained on.
//
// The template is the Jinja subset that such templates use, under the settings
// of `transformers`: if, for (with loop and a filter), set (also of namespaces
// and blocks), macros, filters, tests, string methods, slices, break and
// continue, generation blocks. A construct outside it is an error with its line
// and column, as is a template that works too long.
//
//   Result<ChatTemplate> chat = ChatTemplate::Load(directory);
//   Result<std::string> text = chat->Render({.messages = messages});
//
// Thread-safety: immutable.
#ifndef PACE_TEXT_CHAT_TEMPLATE_H_
#define PACE_TEXT_CHAT_TEMPLATE_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "text/value.h"

namespace pace {

struct ChatInputs {
  Value messages;              // a list of dicts
  std::optional<Value> tools;  // none: the variable is none
  bool add_generation_prompt = false;
  ValueDict extra;  // further variables: enable_thinking, ...
  // The time that strftime_now tells; none: that function is undefined, and
  // templates fall back on a fixed date, so that renderings repeat.
  std::optional<std::chrono::sys_seconds> now;
};

class ChatTemplate {
 public:
  // The template in `directory`/tokenizer_config.json, or chat_template.jinja
  // beside it. The tokenizer's special tokens (bos_token, ...) become variables.
  static Result<ChatTemplate> Load(const std::string& directory);
  static Result<ChatTemplate> LoadFile(const std::string& path);
  static Result<ChatTemplate> Parse(std::string_view source);

  Result<std::string> Render(const ChatInputs& inputs) const;

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace pace

#endif  // PACE_TEXT_CHAT_TEMPLATE_H_
