#include "core/json_scanner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>

#include "core/printable.h"
#include "core/utf8.h"

namespace pace {
namespace {

// No file of ours nests deeper; a hostile one could for megabytes.
constexpr size_t kMaxDepth = 64;

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool EndsScalar(char c) {
  return IsSpace(c) || c == ',' || c == '}' || c == ']' || c == ':';
}

}  // namespace

void JsonScanner::SkipSpace() {
  while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
}

// The next character that is not space; NUL at the end, which no rule accepts.
char JsonScanner::Peek() {
  SkipSpace();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonScanner::EnterObject() {
  if (!ok()) return false;
  if (Peek() != '{') return Fail("must be an object in braces");
  if (path_.size() == kMaxDepth) return FailSyntax("nested too deeply");
  ++at_;
  path_.emplace_back().is_object = true;
  return true;
}

bool JsonScanner::EnterArray() {
  if (!ok()) return false;
  if (Peek() != '[') return Fail("must be a list in brackets");
  if (path_.size() == kMaxDepth) return FailSyntax("nested too deeply");
  ++at_;
  path_.emplace_back();
  return true;
}

// Moves to the next entry of the innermost container, or out of it.
bool JsonScanner::NextEntry(char close) {
  Frame& frame = path_.back();
  const char next = Peek();
  if (next == close) {
    ++at_;
    path_.pop_back();
    return false;
  }
  if (frame.count > 0) {
    if (next != ',') return FailSyntax(Concat("expected ',' or '", close, "'"));
    ++at_;
  }
  ++frame.count;
  return true;
}

bool JsonScanner::NextKey() {
  if (!ok() || !NextEntry('}')) return false;
  Frame& frame = path_.back();
  if (Peek() != '"') return FailSyntax("expected a key in quotes");
  frame.key.clear();
  if (!ScanString(frame.key)) return false;
  if (Peek() != ':') return FailSyntax("expected ':' after the key");
  ++at_;
  return true;
}

bool JsonScanner::NextItem() {
  if (!ok() || !NextEntry(']')) return false;
  // A comma must be followed by an item.
  if (Peek() == ']') return FailSyntax("expected a value after ','");
  return true;
}

bool JsonScanner::Literal(std::string_view word) {
  SkipSpace();
  if (text_.substr(at_, word.size()) != word) return false;
  const size_t end = at_ + word.size();
  if (end < text_.size() && !EndsScalar(text_[end])) return false;
  at_ = end;
  return true;
}

bool JsonScanner::TakeNull() {
  return ok() && Literal("null");
}

std::string_view JsonScanner::ScanNumber(std::string_view expected) {
  SkipSpace();
  const size_t begin = at_;
  size_t at = at_;
  const auto digits = [&] {
    const size_t first = at;
    while (at < text_.size() && IsDigit(text_[at])) ++at;
    return at - first;
  };
  if (at < text_.size() && text_[at] == '-') ++at;
  const bool leading_zero = at < text_.size() && text_[at] == '0';
  size_t num_digits = digits();
  bool valid = num_digits == 1 || (num_digits > 1 && !leading_zero);
  if (valid && at < text_.size() && text_[at] == '.') {
    ++at;
    valid = digits() > 0;
  }
  if (valid && at < text_.size() && (text_[at] == 'e' || text_[at] == 'E')) {
    ++at;
    if (at < text_.size() && (text_[at] == '+' || text_[at] == '-')) ++at;
    valid = digits() > 0;
  }
  if (valid && (at == text_.size() || EndsScalar(text_[at]))) {
    at_ = at;
    return text_.substr(begin, at - begin);
  }
  size_t end = begin;
  while (end < text_.size() && !EndsScalar(text_[end])) ++end;
  if (end == begin) {
    FailSyntax("expected a value");
  } else {
    FailValue(text_.substr(begin, end - begin), expected, "");
  }
  return {};
}

bool JsonScanner::Integer(int64_t minimum, int64_t maximum, std::string_view hint, int64_t& out) {
  if (!ok()) return false;
  const std::string_view number = ScanNumber("must be an integer");
  if (!ok()) return false;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool whole = end == number.data() + number.size();
  if (!whole) return FailValue(number, "must be an integer", hint);
  const bool too_large = error == std::errc::result_out_of_range;
  if (too_large ? number.front() == '-' : value < minimum) {
    return FailValue(number, Concat("must be >= ", minimum), hint);
  }
  if (too_large || value > maximum) return FailValue(number, Concat("must be <= ", maximum), hint);
  out = value;
  return true;
}

bool JsonScanner::Real(double minimum, double maximum, std::string_view hint, double& out) {
  if (!ok()) return false;
  const std::string_view number = ScanNumber("must be a finite number");
  if (!ok()) return false;
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec != std::errc() || !std::isfinite(value)) {
    // Too large or too small for a double; strtod tells which.
    value = std::strtod(std::string(number).c_str(), nullptr);
    if (!std::isfinite(value)) return FailValue(number, "must be a finite number", hint);
  }
  if (value < minimum) return FailValue(number, Concat("must be >= ", minimum), hint);
  if (value > maximum) return FailValue(number, Concat("must be <= ", maximum), hint);
  out = value;
  return true;
}

JsonScanner::Kind JsonScanner::NextKind() {
  switch (Peek()) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kText;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    default:
      return Kind::kNumber;
  }
}

bool JsonScanner::FailWith(const Status& status) {
  if (ok()) status_ = status;
  return false;
}

bool JsonScanner::Bool(bool& out) {
  if (!ok()) return false;
  out = Literal("true");
  return out || Literal("false") || Fail("must be true or false");
}

bool JsonScanner::Text(std::string& out) {
  if (!ok()) return false;
  if (Peek() != '"') return Fail("must be a text in quotes");
  out.clear();
  return ScanString(out);
}

bool JsonScanner::ScanString(std::string& out) {
  ++at_;  // the opening quote
  while (at_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c < 0x20) return FailSyntax("control character in a text");
    if (c == '\\') {
      if (!ScanEscape(out)) return false;
    } else if (c < 0x80) {
      out += text_[at_++];
    } else if (!ScanUtf8(out)) {
      return false;
    }
  }
  return FailSyntax("a text without its closing quote");
}

bool JsonScanner::ScanEscape(std::string& out) {
  ++at_;  // the backslash
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  ++at_;
  switch (c) {
    case '"':
    case '\\':
    case '/':
      out += c;
      return true;
    case 'b':
      out += '\b';
      return true;
    case 'f':
      out += '\f';
      return true;
    case 'n':
      out += '\n';
      return true;
    case 'r':
      out += '\r';
      return true;
    case 't':
      out += '\t';
      return true;
    case 'u':
      break;
    default:
      return FailSyntax("unknown escape in a text");
  }
  uint32_t code = 0;
  if (!ScanHex(code)) return false;
  if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
    at_ += 2;
    uint32_t low = 0;
    if (!ScanHex(low)) return false;
    if (low < 0xDC00 || low > 0xDFFF) return FailSyntax("half a surrogate pair in a text");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  if (code >= 0xD800 && code <= 0xDFFF) return FailSyntax("half a surrogate pair in a text");
  AppendCodePoint(out, code);
  return true;
}

bool JsonScanner::ScanHex(uint32_t& out) {
  const std::string_view hex = text_.substr(std::min(at_, text_.size()), 4);
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), out, 16);
  if (hex.size() != 4 || error != std::errc() || end != hex.data() + 4) {
    return FailSyntax("\\u needs four hexadecimal digits");
  }
  at_ += 4;
  return true;
}

bool JsonScanner::ScanUtf8(std::string& out) {
  const CodePoint point = ReadCodePoint(text_, at_);
  if (!point.well_formed) return FailSyntax("not UTF-8");
  out.append(text_, at_, point.num_bytes);
  at_ += point.num_bytes;
  return true;
}

bool JsonScanner::Skip() {
  if (!ok()) return false;
  const size_t depth = path_.size();
  do {
    const char next = Peek();
    if (next == '{') {
      if (!EnterObject()) return false;
    } else if (next == '[') {
      if (!EnterArray()) return false;
    } else if (next == '"') {
      scratch_.clear();
      if (!ScanString(scratch_)) return false;
    } else if (!Literal("null") && !Literal("true") && !Literal("false")) {
      if (ScanNumber("must be a JSON value").empty()) return false;
    }
    // Close what ends here; stop at the first container with a further entry.
    while (ok() && path_.size() > depth && !(path_.back().is_object ? NextKey() : NextItem())) {
    }
  } while (ok() && path_.size() > depth);
  return ok();
}

bool JsonScanner::End() {
  if (!ok()) return false;
  SkipSpace();
  return at_ == text_.size() || FailSyntax("text after the end of the value");
}

std::string JsonScanner::Path() const {
  std::string path;
  for (const Frame& frame : path_) {
    if (!frame.is_object) {
      AppendTo(path, '[');
      AppendTo(path, frame.count - 1);
      AppendTo(path, ']');
    } else if (frame.count > 0) {
      if (!path.empty()) path += '.';
      path += Printable(frame.key);
    }
  }
  return path;
}

bool JsonScanner::Fail(std::string_view rule) {
  if (!ok()) return false;
  const std::string path = Path();
  status_ = path.empty() ? InvalidArgument(rule) : InvalidArgument(path, ": ", rule);
  return false;
}

bool JsonScanner::FailField(std::string_view field, std::string_view value, std::string_view rule) {
  if (!ok()) return false;
  const std::string path = Path();
  status_ = InvalidArgument(path, path.empty() ? "" : ".", field, " = ", value, ": ", rule);
  return false;
}

bool JsonScanner::FailUnknownKey() {
  if (!ok()) return false;
  status_ = InvalidArgument(Path(), ": unknown key");
  return false;
}

bool JsonScanner::FailSyntax(std::string_view rule) {
  if (!ok()) return false;
  status_ = InvalidArgument("column ", std::min(at_, text_.size()) + 1, ": not JSON: ", rule);
  return false;
}

bool JsonScanner::FailValue(std::string_view value, std::string_view rule, std::string_view hint) {
  if (!ok()) return false;
  std::string message = Concat(Path(), " = ", Printable(value), ": ", rule);
  if (!hint.empty()) message += Concat(" (", hint, ")");
  status_ = InvalidArgument(message);
  return false;
}

}  // namespace pace
