// Concat joins values into one string, for error messages and labels.
//
//   Concat("supply.threshold = ", -1, ": must be >= 0");
//
// Doubles print in their shortest form that reads back to the same value.
#ifndef PACE_CORE_CONCAT_H_
#define PACE_CORE_CONCAT_H_

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace pace {

inline void AppendTo(std::string& out, std::string_view text) {
  out += text;
}
inline void AppendTo(std::string& out, const char* text) {
  out += text;
}
inline void AppendTo(std::string& out, char c) {
  out += c;
}
inline void AppendTo(std::string& out, bool value) {
  out += value ? "true" : "false";
}

template <typename Number>
  requires(std::integral<Number> || std::floating_point<Number>)
void AppendTo(std::string& out, Number value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  out.append(buffer, end);
}

template <typename... Parts>
[[nodiscard]] std::string Concat(const Parts&... parts) {
  std::string out;
  (AppendTo(out, parts), ...);
  return out;
}

}  // namespace pace

#endif  // PACE_CORE_CONCAT_H_
