// Fuzzes templates: any text either renders within bounds or is refused.
#include <cstdint>
#include <string>

#include "core/check.h"
#include "text/chat_template.h"
#include "text/hermes.h"
#include "text/python_text.h"

namespace pace {
namespace {

void CheckOneLine(const Status& status) {
  PACE_CHECK(status.message().find('\n') == std::string::npos,
             "an error must be one line: ", status.message());
}

void Fuzz(const std::string& text) {
  static const Value messages =
      *ParsePythonJson(R"([{"role": "user", "content": "hé"}, {"role": "assistant",
          "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5]}}}]}])");
  const Result<ChatTemplate> chat = ChatTemplate::Parse(text);
  if (!chat.ok()) {
    CheckOneLine(chat.status());
  } else {
    ChatInputs inputs;
    inputs.messages = messages;
    const Result<std::string> rendered = chat->Render(inputs);
    if (!rendered.ok()) CheckOneLine(rendered.status());
  }
  ParseHermes(text);
}

}  // namespace
}  // namespace pace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pace::Fuzz(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
