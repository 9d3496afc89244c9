// How Python writes values: json.dumps, str and repr; and how json.loads reads.
//
// The reader takes what Python's takes: NaN and Infinity, integers of any
// length, a key given twice (the last counts), half a surrogate pair in an
// escape. Nesting beyond kMaxValueDepth is an error.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TEXT_PYTHON_TEXT_H_
#define PACE_TEXT_PYTHON_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "text/value.h"

namespace pace {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level of it; none: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  size_t max_bytes = size_t{64} << 20;  // more is an error
};

Result<Value> ParsePythonJson(std::string_view text);

// Undefined and objects cannot be written.
Result<std::string> ToPythonJson(const Value& value, const JsonStyle& style = {});

// repr(value), at most about `max_bytes` long.
Result<std::string> PythonRepr(const Value& value, size_t max_bytes);

// repr of a float: "1.0", "1e+20", "nan".
std::string PythonReal(double value);

}  // namespace pace

#endif  // PACE_TEXT_PYTHON_TEXT_H_
