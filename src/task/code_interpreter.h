// The one tool that responses may use: its name, its schema as prompts show it, and a
// call of it as a model writes it.
//
// Thread-safety: constants and functions of their arguments.
#ifndef PACE_TASK_CODE_INTERPRETER_H_
#define PACE_TASK_CODE_INTERPRETER_H_

#include <string>
#include <string_view>

#include "text/value.h"

namespace pace {

inline constexpr std::string_view kCodeInterpreter = "code_interpreter";

// A Hermes call of a program that prints an expression is these around it.
inline constexpr std::string_view kPrintCallBegin =
    "<tool_call>\n{\"name\": \"code_interpreter\", \"arguments\": {\"code\": \"print(";
inline constexpr std::string_view kPrintCallEnd = ")\"}}\n</tool_call>";

// The list of tools for a chat template: ReTool's schema, key for key.
Value CodeInterpreterTools();

}  // namespace pace

#endif  // PACE_TASK_CODE_INTERPRETER_H_
