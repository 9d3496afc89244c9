#include "task/code_interpreter.h"

#include <utility>

#include "core/check.h"
#include "text/python_text.h"

namespace pace {
namespace {

// Fixed by the method: prompts are compared to the byte.
constexpr std::string_view kSchema =
    R"({"type": "function", "function": {"name": "code_interpreter", "description": )"
    R"("Execute a self-contained Python 3 program for mathematical calculation and verification. )"
    R"(The code value must contain raw executable Python source only: do not include Markdown )"
    R"(fences, backticks, XML, JSON wrappers, shell commands, or explanatory prose. Explicitly )"
    R"(print every result needed in the response. Each call is stateless, so repeat all required )"
    R"(imports and definitions. If execution returns an error, correct the code before )"
    R"(retrying.", "parameters": {"type": "object", "properties": {"code": {"type": "string", )"
    R"("description": "Raw, self-contained Python 3 source with no Markdown fencing; use )"
    R"(print(...) to return results."}}, "required": ["code"]}}})";

}  // namespace

Value CodeInterpreterTools() {
  Result<Value> schema = ParsePythonJson(kSchema);
  PACE_CHECK(schema.ok(), schema.status().message());
  return Value::MakeList({std::move(schema).value()});
}

}  // namespace pace
