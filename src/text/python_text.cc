#include "text/python_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "text/characters.h"

namespace pace {
namespace {

void AppendHex(std::string& out, std::string_view prefix, uint32_t code, size_t num_digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += prefix;
  for (size_t i = num_digits; i-- > 0;) out += kDigits[(code >> (4 * i)) & 0xF];
}

// A half surrogate in three bytes reads as an error; this gives it back.
CodePoint ReadWithSurrogates(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (at + 2 < text.size() && byte(0) == 0xED && byte(1) >= 0xA0 && (byte(2) & 0xC0) == 0x80) {
    return {0xD000u | ((byte(1) & 0x3Fu) << 6) | (byte(2) & 0x3Fu), 3, true};
  }
  return ReadCodePoint(text, at);
}

void AppendJson(std::string& out, std::string_view text, bool ensure_ascii) {
  constexpr std::string_view kPlain = "\"\\\n\r\t\f\b";
  constexpr std::string_view kNames = "\"\\nrtfb";
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadWithSurrogates(text, at);
    const uint32_t code = point.code;
    const size_t escape = code < 0x80 ? kPlain.find(static_cast<char>(code)) : std::string::npos;
    if (escape != std::string_view::npos) {
      out += '\\';
      out += kNames[escape];
    } else if (code < 0x20 || (ensure_ascii && code == 0x7F)) {
      AppendHex(out, "\\u", code, 4);
    } else if (ensure_ascii && code >= 0x10000) {
      AppendHex(out, "\\u", 0xD800 + ((code - 0x10000) >> 10), 4);
      AppendHex(out, "\\u", 0xDC00 + ((code - 0x10000) & 0x3FF), 4);
    } else if (ensure_ascii && code >= 0x80) {
      AppendHex(out, "\\u", code, 4);
    } else {
      out.append(text, at, point.num_bytes);
    }
    at += point.num_bytes;
  }
  out += '"';
}

class JsonDump {
 public:
  explicit JsonDump(const JsonStyle& style) : style_(style) {}

  Result<std::string> Run(const Value& value) {
    Write(value, 0);
    if (!status_.ok()) return status_;
    return std::move(out_);
  }

 private:
  void Write(const Value& value, int level) {
    if (out_.size() > style_.max_bytes) {
      status_ = InvalidArgument("JSON of more than ", style_.max_bytes, " bytes");
    }
    if (!status_.ok()) return;
    if (value.is_none()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.boolean() ? "true" : "false";
    } else if (value.is_integer()) {
      AppendTo(out_, value.integer());
    } else if (value.is_big_integer()) {
      out_ += value.digits();
    } else if (value.is_real()) {
      WriteReal(value.real());
    } else if (value.is_text()) {
      AppendJson(out_, value.text(), style_.ensure_ascii);
    } else if (value.is_list()) {
      WriteList(value.list(), level);
    } else if (value.is_dict()) {
      WriteDict(value.dict(), level);
    } else {
      status_ = InvalidArgument("a value of type ", value.TypeName(), " is not JSON serializable");
    }
  }

  void WriteReal(double value) {
    if (std::isnan(value)) {
      out_ += "NaN";
    } else if (std::isinf(value)) {
      out_ += value > 0 ? "Infinity" : "-Infinity";
    } else {
      out_ += PythonReal(value);
    }
  }

  void Line(int level) {
    if (!style_.indent.has_value()) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
  }
  void Separate(bool& first, int level) {
    if (!first) out_ += style_.item_separator;
    first = false;
    Line(level);
  }

  void WriteList(const ValueList& list, int level) {
    out_ += '[';
    bool first = true;
    for (const Value& item : list) {
      Separate(first, level + 1);
      Write(item, level + 1);
    }
    if (!first) Line(level);
    out_ += ']';
  }

  void WriteDict(const ValueDict& dict, int level) {
    std::vector<const std::pair<std::string, Value>*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::sort(entries.begin(), entries.end(),
                [](const auto* a, const auto* b) { return a->first < b->first; });
    }
    out_ += '{';
    bool first = true;
    for (const auto* entry : entries) {
      Separate(first, level + 1);
      AppendJson(out_, entry->first, style_.ensure_ascii);
      out_ += style_.key_separator;
      Write(entry->second, level + 1);
    }
    if (!first) Line(level);
    out_ += '}';
  }

  const JsonStyle& style_;
  std::string out_;
  Status status_;
};

void AppendReprText(std::string& out, std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos;
  const char quote = single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = ReadWithSurrogates(text, at);
    const uint32_t code = point.code;
    const size_t escape = code < 0x80 ? std::string_view("\n\r\t\\").find(static_cast<char>(code))
                                      : std::string::npos;
    if (escape != std::string_view::npos) {
      out += '\\';
      out += "nrt\\"[escape];
    } else if (code == static_cast<unsigned char>(quote)) {
      out += '\\';
      out += quote;
    } else if (IsPrintable(code)) {
      out.append(text, at, point.num_bytes);
    } else if (code < 0x100) {
      AppendHex(out, "\\x", code, 2);
    } else if (code < 0x10000) {
      AppendHex(out, "\\u", code, 4);
    } else {
      AppendHex(out, "\\U", code, 8);
    }
    at += point.num_bytes;
  }
  out += quote;
}

// False once the text is too long.
bool AppendRepr(std::string& out, const Value& value, size_t max_bytes) {
  if (out.size() > max_bytes) return false;
  if (value.is_none()) {
    out += "None";
  } else if (value.is_bool()) {
    out += value.boolean() ? "True" : "False";
  } else if (value.is_integer()) {
    AppendTo(out, value.integer());
  } else if (value.is_big_integer()) {
    out += value.digits();
  } else if (value.is_real()) {
    out += PythonReal(value.real());
  } else if (value.is_text()) {
    AppendReprText(out, value.text());
  } else if (value.is_list()) {
    out += value.is_tuple() ? '(' : '[';
    for (size_t i = 0; i < value.list().size(); ++i) {
      if (i > 0) out += ", ";
      if (!AppendRepr(out, value.list()[i], max_bytes)) return false;
    }
    if (value.is_tuple() && value.list().size() == 1) out += ',';
    out += value.is_tuple() ? ')' : ']';
  } else if (value.is_dict()) {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : value.dict().entries()) {
      if (!first) out += ", ";
      first = false;
      AppendReprText(out, key);
      out += ": ";
      if (!AppendRepr(out, item, max_bytes)) return false;
    }
    out += '}';
  } else {
    out += value.is_undefined() ? "Undefined" : "<object>";
  }
  return true;
}

}  // namespace

Result<std::string> ToPythonJson(const Value& value, const JsonStyle& style) {
  return JsonDump(style).Run(value);
}

Result<std::string> PythonRepr(const Value& value, size_t max_bytes) {
  std::string out;
  if (!AppendRepr(out, value, max_bytes)) {
    return InvalidArgument("a text of more than ", max_bytes, " bytes");
  }
  return out;
}

std::string PythonReal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string shortest(buffer.data(), end);
  const size_t e = shortest.find('e');
  const int exponent = std::stoi(shortest.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return shortest;
  // The same digits, without an exponent.
  const bool negative = shortest[0] == '-';
  std::string digits;
  for (const char c : shortest.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  std::string out = negative ? "-" : "";
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto point = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= point) return out + digits + std::string(point - digits.size(), '0') + ".0";
  return out + digits.substr(0, point) + "." + digits.substr(point);
}

}  // namespace pace
