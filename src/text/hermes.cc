#include "text/hermes.h"

#include "text/python_text.h"

namespace pace {
namespace {

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kClose = "</tool_call>";

void AddCall(std::string_view json, std::vector<ToolCall>& calls) {
  const Result<Value> call = ParsePythonJson(json);
  if (!call.ok() || !call->is_dict()) return;
  const Value* name = call->dict().Find("name");
  const Value* arguments = call->dict().Find("arguments");
  if (name == nullptr || arguments == nullptr || !name->is_text()) return;
  Result<std::string> text = ToPythonJson(*arguments);
  if (text.ok()) calls.push_back({name->text(), std::move(text).value()});
}

}  // namespace

HermesMessage ParseHermes(std::string_view text) {
  HermesMessage message;
  size_t done = 0;
  while (true) {
    const size_t open = text.find(kOpen, done);
    const size_t body = open == std::string_view::npos ? open : open + kOpen.size();
    const size_t close = body == std::string_view::npos ? body : text.find(kClose, body);
    if (close == std::string_view::npos) break;
    message.content += text.substr(done, open - done);
    AddCall(text.substr(body, close - body), message.calls);
    done = close + kClose.size();
  }
  message.content += text.substr(done);
  return message;
}

}  // namespace pace
