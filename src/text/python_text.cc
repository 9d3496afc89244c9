#include "text/python_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/utf8.h"
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

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// json.loads.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<Value> Run() {
    Value value;
    if (!Read(value, 0)) return status_;
    Space();
    if (at_ != text_.size()) {
      Fail("text after the end of the value");
      return status_;
    }
    return value;
  }

 private:
  bool Fail(std::string_view rule) {
    status_ = InvalidArgument("byte ", at_ + 1, ": not JSON: ", rule);
    return false;
  }
  char Look() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Space() {
    while (Look() == ' ' || Look() == '\t' || Look() == '\n' || Look() == '\r') ++at_;
  }
  bool Take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool Read(Value& out, int depth) {
    if (depth >= kMaxValueDepth) return Fail("nested too deeply");
    Space();
    const char c = Look();
    if (c == '{') return ReadDict(out, depth);
    if (c == '[') return ReadList(out, depth);
    if (c == '"') {
      std::string text;
      if (!ReadText(text)) return false;
      out = Value(std::move(text));
      return true;
    }
    if (Take("null")) {
      out = Value::MakeNone();
    } else if (Take("true")) {
      out = Value(true);
    } else if (Take("false")) {
      out = Value(false);
    } else if (Take("NaN")) {
      out = Value(std::numeric_limits<double>::quiet_NaN());
    } else if (Take("Infinity")) {
      out = Value(std::numeric_limits<double>::infinity());
    } else if (Take("-Infinity")) {
      out = Value(-std::numeric_limits<double>::infinity());
    } else {
      return ReadNumber(out);
    }
    return true;
  }

  bool ReadDict(Value& out, int depth) {
    ValueDict dict;
    ++at_;
    Space();
    if (!Take("}")) {
      do {
        Space();
        std::string key;
        if (Look() != '"') return Fail("expected a key in quotes");
        if (!ReadText(key)) return false;
        Space();
        if (!Take(":")) return Fail("expected ':' after the key");
        Value value;
        if (!Read(value, depth + 1)) return false;
        dict.Put(std::move(key), std::move(value));
        Space();
      } while (Take(","));
      if (!Take("}")) return Fail("expected ',' or '}'");
    }
    out = Value::MakeDict(std::move(dict));
    return true;
  }

  bool ReadList(Value& out, int depth) {
    ValueList list;
    ++at_;
    Space();
    if (!Take("]")) {
      do {
        if (!Read(list.emplace_back(), depth + 1)) return false;
        Space();
      } while (Take(","));
      if (!Take("]")) return Fail("expected ',' or ']'");
    }
    out = Value::MakeList(std::move(list));
    return true;
  }

  bool ReadNumber(Value& out) {
    const size_t begin = at_;
    bool real = false;
    if (Look() == '-') ++at_;
    if (!IsDigit(Look())) {
      at_ = begin;
      return Fail("expected a value");
    }
    if (Look() == '0') {
      ++at_;
    } else {
      while (IsDigit(Look())) ++at_;
    }
    if (Look() == '.' && at_ + 1 < text_.size() && IsDigit(text_[at_ + 1])) {
      real = true;
      for (++at_; IsDigit(Look());) ++at_;
    }
    if (Look() == 'e' || Look() == 'E') {
      size_t digits = at_ + 1;
      if (digits < text_.size() && (text_[digits] == '+' || text_[digits] == '-')) ++digits;
      if (digits < text_.size() && IsDigit(text_[digits])) {
        real = true;
        for (at_ = digits; IsDigit(Look());) ++at_;
      }
    }
    const std::string number(text_.substr(begin, at_ - begin));
    if (real) {
      out = Value(std::strtod(number.c_str(), nullptr));
      return true;
    }
    return ReadInteger(number, out);
  }

  bool ReadInteger(const std::string& number, Value& out) {
    // Python refuses to convert more digits than this.
    constexpr size_t kMaxDigits = 4300;
    int64_t value = 0;
    const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
    if (result.ec == std::errc()) {
      out = Value(value);
      return true;
    }
    if (number.size() > kMaxDigits) return Fail("an integer of too many digits");
    out = Value::MakeBigInteger(number);
    return true;
  }

  bool ReadText(std::string& out) {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return Fail("control character in a text");
      if (c == '\\') {
        if (!ReadEscape(out)) return false;
      } else {
        out += c;
        ++at_;
      }
    }
    return Fail("a text without its closing quote");
  }

  bool ReadEscape(std::string& out) {
    ++at_;
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const size_t plain = at_ < text_.size() ? kNames.find(text_[at_]) : std::string_view::npos;
    if (plain != std::string_view::npos) {
      out += kMeanings[plain];
      ++at_;
      return true;
    }
    uint32_t code = 0;
    if (!ReadHex(code)) return false;
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
      const size_t before = at_;
      ++at_;
      uint32_t low = 0;
      if (!ReadHex(low)) return false;
      if (low >= 0xDC00 && low <= 0xDFFF) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else {
        at_ = before;
      }
    }
    AppendCodePoint(out, code);
    return true;
  }

  // Stands on the 'u'.
  bool ReadHex(uint32_t& out) {
    const std::string_view hex = text_.substr(at_, 5);
    if (hex.empty() || hex[0] != 'u') return Fail("unknown escape in a text");
    const auto result = std::from_chars(hex.data() + 1, hex.data() + hex.size(), out, 16);
    if (hex.size() != 5 || result.ec != std::errc() || result.ptr != hex.data() + 5) {
      return Fail("\\u needs four hexadecimal digits");
    }
    at_ += 5;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  Status status_;
};

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

Result<Value> ParsePythonJson(std::string_view text) {
  return Reader(text).Run();
}

}  // namespace pace
