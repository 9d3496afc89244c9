#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "core/concat.h"
#include "core/printable.h"
#include "text/characters.h"

namespace pace::jinja {
namespace {

using Kind = Token::Kind;

// Jinja reads "\r\n" and "\r" as "\n", and drops one newline at the end.
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

size_t LengthOfSpace(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = ReadCodePoint(text, at);
    if (!IsPythonSpace(point.code)) break;
    at += point.num_bytes;
  }
  return at;
}

bool BeginsName(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(NormalizeNewlines(source)), rest_(source_) {}

  std::vector<Token> Run() {
    while (!rest_.empty()) LexData();
    Add(Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const { throw TemplateError(position_, what); }
  void Add(Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), position_}); }

  void Advance(size_t count) {
    for (const char c : rest_.substr(0, count)) {
      position_.column = c == '\n' ? 1 : position_.column + 1;
      position_.line += c == '\n';
    }
    if (count > 0) line_starting_ = rest_[count - 1] == '\n';
    rest_.remove_prefix(count);
  }

  // Text up to the next tag, and the tag.
  void LexData() {
    size_t open = 0;
    while (true) {
      open = rest_.find('{', open);
      if (open == std::string_view::npos) break;
      const char next = open + 1 < rest_.size() ? rest_[open + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') break;
      ++open;
    }
    if (open == std::string_view::npos) {
      Add(Kind::kData, std::string(rest_));
      return Advance(rest_.size());
    }
    const char tag = rest_[open + 1];
    const char sign = open + 2 < rest_.size() ? rest_[open + 2] : '\0';
    std::string_view text = rest_.substr(0, open);
    if (sign == '-') {
      while (!text.empty()) {
        const size_t last = BeginOfLastCharacter(text);
        if (!IsPythonSpace(ReadCodePoint(text, last).code)) break;
        text = text.substr(0, last);
      }
    } else if (sign != '+' && tag != '{') {
      text = WithoutIndent(text);
    }
    if (!text.empty()) Add(Kind::kData, std::string(text));
    Advance(open);
    const Position begin = position_;
    Advance(sign == '-' || sign == '+' ? 3 : 2);
    if (tag == '#') return LexComment(begin);
    if (tag == '%' && LexRaw(begin)) return;
    tokens_.push_back({tag == '{' ? Kind::kVariable : Kind::kBlock, "", begin});
    LexInside(tag == '{' ? "}}" : "%}", begin);
  }

  // lstrip_blocks: only spaces between the line's beginning and the tag.
  std::string_view WithoutIndent(std::string_view text) const {
    const size_t newline = text.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starting_) return text;
    const bool only_space = text.substr(line).find_first_not_of(" \t") == std::string_view::npos;
    return only_space ? text.substr(0, line) : text;
  }

  // After a closing tag: '-' takes all space, a block or comment one newline.
  void CloseTag(size_t tag_size, char sign, bool trims_newline) {
    size_t count = tag_size + (sign != '\0' ? 1 : 0);
    if (sign == '-') {
      count += LengthOfSpace(rest_.substr(count));
    } else if (sign != '+' && trims_newline && count < rest_.size() && rest_[count] == '\n') {
      ++count;
    }
    Advance(count);
  }

  void LexComment(Position begin) {
    const size_t close = rest_.find("#}");
    if (close == std::string_view::npos) throw TemplateError(begin, "a comment without '#}'");
    const char before = close > 0 ? rest_[close - 1] : '\0';
    const char sign = before == '-' || before == '+' ? before : '\0';
    Advance(sign == '\0' ? close : close - 1);
    CloseTag(2, sign, true);
  }

  // {% raw %} ... {% endraw %}; false if this is another block.
  bool LexRaw(Position begin) {
    size_t at = LengthOfSpace(rest_);
    if (rest_.substr(at, 3) != "raw") return false;
    at += 3;
    at += LengthOfSpace(rest_.substr(at));
    const char sign =
        at < rest_.size() && (rest_[at] == '-' || rest_[at] == '+') ? rest_[at] : '\0';
    if (rest_.substr(at + (sign != '\0'), 2) != "%}") return false;
    Advance(at);
    CloseTag(2, sign, true);
    for (size_t open = rest_.find("{%"); open != std::string_view::npos;
         open = rest_.find("{%", open + 2)) {
      size_t name = open + 2;
      const char strip = name < rest_.size() && rest_[name] == '-' ? '-' : '\0';
      if (strip == '-') ++name;
      name += LengthOfSpace(rest_.substr(name));
      if (rest_.substr(name, 6) != "endraw") continue;
      std::string_view text = rest_.substr(0, open);
      if (strip == '-') {
        while (!text.empty() &&
               IsPythonSpace(ReadCodePoint(text, BeginOfLastCharacter(text)).code)) {
          text = text.substr(0, BeginOfLastCharacter(text));
        }
      } else {
        text = WithoutIndent(text);
      }
      Add(Kind::kData, std::string(text));
      name += 6;
      name += LengthOfSpace(rest_.substr(name));
      const char end =
          name < rest_.size() && (rest_[name] == '-' || rest_[name] == '+') ? rest_[name] : '\0';
      if (rest_.substr(name + (end != '\0'), 2) != "%}") Fail("expected '%}' behind endraw");
      Advance(name);
      CloseTag(2, end, true);
      return true;
    }
    throw TemplateError(begin, "a raw block without endraw");
  }

  void LexInside(std::string_view close, Position begin) {
    const bool block = close == "%}";
    int depth = 0;
    while (true) {
      Advance(LengthOfSpace(rest_));
      if (rest_.empty()) throw TemplateError(begin, Concat("a tag without '", close, "'"));
      const char c = rest_[0];
      const bool signed_close =
          (c == '-' || (c == '+' && block)) && rest_.substr(1).starts_with(close);
      // A dict may end with the same braces as the tag: only at depth 0 is it one.
      if (signed_close || (depth == 0 && rest_.starts_with(close))) {
        Add(block ? Kind::kBlockEnd : Kind::kVariableEnd, "");
        return CloseTag(2, signed_close ? c : '\0', block);
      }
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') depth = std::max(0, depth - 1);
      LexToken();
    }
  }

  void LexToken() {
    const char c = rest_[0];
    if (c == '\'' || c == '"') return LexText(c);
    if (BeginsName(c)) {
      size_t size = 1;
      while (size < rest_.size() && (BeginsName(rest_[size]) || IsDigit(rest_[size]))) ++size;
      Add(Kind::kName, std::string(rest_.substr(0, size)));
      return Advance(size);
    }
    if (IsDigit(c)) return LexNumber();
    for (const std::string_view sign : {"//", "**", "==", "!=", ">=", "<="}) {
      if (!rest_.starts_with(sign)) continue;
      Add(Kind::kSign, std::string(sign));
      return Advance(2);
    }
    if (std::string_view("+-/*%~[](){}><=.:|,").find(c) == std::string_view::npos) {
      Fail(Concat("'", Printable(rest_.substr(0, 1)), "' is not part of an expression"));
    }
    Add(Kind::kSign, std::string(1, c));
    Advance(1);
  }

  void LexNumber() {
    size_t size = 0;
    const auto digits = [&] {
      while (size < rest_.size() && (IsDigit(rest_[size]) || rest_[size] == '_')) ++size;
    };
    digits();
    bool real = false;
    if (size + 1 < rest_.size() && rest_[size] == '.' && IsDigit(rest_[size + 1])) {
      real = true;
      ++size;
      digits();
    }
    if (size < rest_.size() && (rest_[size] == 'e' || rest_[size] == 'E')) {
      size_t exponent = size + 1;
      if (exponent < rest_.size() && (rest_[exponent] == '+' || rest_[exponent] == '-')) ++exponent;
      if (exponent < rest_.size() && IsDigit(rest_[exponent])) {
        real = true;
        size = exponent;
        digits();
      }
    }
    if (size < rest_.size() && BeginsName(rest_[size]))
      Fail("a number with letters is not supported");
    std::string number(rest_.substr(0, size));
    std::erase(number, '_');
    Add(real ? Kind::kReal : Kind::kInteger, std::move(number));
    Advance(size);
  }

  void LexText(char quote) {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) Fail("a string without its closing quote");
    Add(Kind::kText, Unescape(rest_.substr(1, end - 1)));
    Advance(end + 1);
  }

  // Python's escapes; an unknown one stays as it is written.
  std::string Unescape(std::string_view text) const {
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      const size_t plain = kNames.find(c);
      const size_t num_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
      if (plain != std::string_view::npos) {
        out += kMeanings[plain];
      } else if (num_digits > 0) {
        AppendCodePoint(out, ReadCode(text.substr(i + 1, num_digits), num_digits, 16));
        i += num_digits;
      } else if (c >= '0' && c <= '7') {
        size_t count = 1;
        while (count < 3 && i + count < text.size() && text[i + count] >= '0' &&
               text[i + count] <= '7')
          ++count;
        AppendCodePoint(out, ReadCode(text.substr(i, count), count, 8));
        i += count - 1;
      } else if (c == 'N') {
        Fail("'\\N' in a string is not supported");
      } else if (c != '\n') {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  uint32_t ReadCode(std::string_view digits, size_t count, int base) const {
    uint32_t code = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
    const bool whole = digits.size() == count && result.ptr == digits.data() + count;
    if (!whole || result.ec != std::errc() || code > 0x10FFFF ||
        (code >= 0xD800 && code < 0xE000)) {
      Fail("an escape in a string that names no character");
    }
    return code;
  }

  std::string source_;
  std::string_view rest_;
  Position position_;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Lex(std::string_view source) {
  return Lexer(source).Run();
}

}  // namespace pace::jinja
