// `hermes`: tool calls taken out of a model's text.
#include "conformance/case_file.h"
#include "text/hermes.h"

namespace pace {
namespace {

std::string Show(const HermesMessage& message) {
  std::string out = message.content;
  for (const ToolCall& call : message.calls) {
    out += Concat("\n[call ", call.name, " ", call.arguments, "]");
  }
  return out;
}

}  // namespace

Status CheckHermes(const KindArguments& arguments, Tally& tally) {
  for (const std::string& path : arguments.paths) {
    const Result<Value> file = ReadCaseFile(path);
    if (!file.ok()) return file.status();
    const Result<ValueList> cases = ListField(*file, "cases", path);
    if (!cases.ok()) return cases.status();
    for (size_t i = 0; i < cases->size(); ++i) {
      const Value& entry = (*cases)[i];
      const Value name = FieldOf(entry, "name");
      const std::string where =
          Concat(path, ": ", name.is_text() ? name.text() : Concat("cases[", i, "]"));
      const Value decoded = FieldOf(entry, "decoded");
      const Result<std::string> text =
          decoded.is_text() ? decoded.text() : TextField(entry, "text", where);
      if (!text.ok()) return text.status();
      const Result<std::string> content = TextField(entry, "content", where);
      if (!content.ok()) return content.status();
      const Result<ValueList> calls = ListField(entry, "calls", where);
      if (!calls.ok()) return calls.status();
      HermesMessage expected{*content, {}};
      for (const Value& call : *calls) {
        const Result<std::string> function = TextField(call, "name", where);
        if (!function.ok()) return function.status();
        const Result<std::string> given = TextField(call, "arguments", where);
        if (!given.ok()) return given.status();
        expected.calls.push_back({*function, *given});
      }
      CompareText(tally, where, "content and calls", Show(ParseHermes(*text)), Show(expected));
    }
  }
  return Status::Ok();
}

}  // namespace pace
