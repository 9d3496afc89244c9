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
    PACE_ASSIGN_OR_RETURN(const Value file, ReadCaseFile(path));
    PACE_ASSIGN_OR_RETURN(const ValueList cases, ListField(file, "cases", path));
    for (size_t i = 0; i < cases.size(); ++i) {
      const Value& entry = cases[i];
      const Value name = FieldOf(entry, "name");
      const std::string where =
          Concat(path, ": ", name.is_text() ? name.text() : Concat("cases[", i, "]"));
      const Value decoded = FieldOf(entry, "decoded");
      PACE_ASSIGN_OR_RETURN(const std::string text,
                            decoded.is_text() ? decoded.text() : TextField(entry, "text", where));
      PACE_ASSIGN_OR_RETURN(const std::string content, TextField(entry, "content", where));
      PACE_ASSIGN_OR_RETURN(const ValueList calls, ListField(entry, "calls", where));
      HermesMessage expected{content, {}};
      for (const Value& call : calls) {
        PACE_ASSIGN_OR_RETURN(const std::string function, TextField(call, "name", where));
        PACE_ASSIGN_OR_RETURN(const std::string given, TextField(call, "arguments", where));
        expected.calls.push_back({function, given});
      }
      CompareText(tally, where, "content and calls", Show(ParseHermes(text)), Show(expected));
    }
  }
  return Status::Ok();
}

}  // namespace pace
