// json.loads, as Python has it.
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/utf8.h"
#include "text/python_text.h"

namespace pace {
namespace {

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

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

Result<Value> ParsePythonJson(std::string_view text) {
  return Reader(text).Run();
}

}  // namespace pace
