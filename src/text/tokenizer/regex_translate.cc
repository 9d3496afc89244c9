// From Oniguruma's dialect to PCRE2's.
#include <cctype>

#include "core/printable.h"
#include "core/utf8.h"
#include "text/tokenizer/regex.h"

namespace pace {
namespace {

// White_Space of Unicode. PCRE2's own \s also takes U+180E.
constexpr std::string_view kSpaces =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> Run() {
    while (at_ < pattern_.size() && ok()) Step();
    if (ok() && in_class_) Refuse("a class without ']'");
    if (!ok()) return status_;
    return std::move(out_);
  }

 private:
  bool ok() const { return status_.ok(); }
  char Look(size_t ahead) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool NextIs(std::string_view word) const { return pattern_.substr(at_, word.size()) == word; }
  void Copy(size_t count) {
    out_.append(pattern_.substr(at_, count));
    at_ += count;
  }
  void Refuse(std::string_view what) {
    if (ok()) {
      status_ = InvalidArgument("regular expression '", Printable(pattern_), "', column ", at_ + 1,
                                ": ", what, " is not supported");
    }
  }

  void Step() {
    const char c = Look(0);
    if (c == '\\') return Escape();
    if (in_class_) return InClass(c);
    if (c == '[') return OpenClass();
    if (c == '(') return Group();
    // Oniguruma reads x{1,3}+ as a repeated interval, PCRE2 as a possessive one.
    if (c == '}' && Look(1) == '+') return Refuse("'+' behind an interval");
    Copy(1);
  }

  void OpenClass() {
    in_class_ = true;
    Copy(1);
    if (Look(0) == '^') Copy(1);
    if (Look(0) == ']') Refuse("']' as the first of a class");
  }

  void InClass(char c) {
    if (c == '[') return Refuse("'[' inside a class");
    if (c == '&' && Look(1) == '&') return Refuse("'&&' inside a class");
    if (c == ']') in_class_ = false;
    Copy(1);
  }

  void Group() {
    if (Look(1) != '?') return Copy(1);
    for (const std::string_view prefix :
         {"(?:", "(?i:", "(?i)", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (NextIs(prefix)) return Copy(prefix.size());
    }
    Refuse(Concat("the group '", Printable(pattern_.substr(at_, 4)), "'"));
  }

  void Space(bool negated) {
    if (in_class_ && negated) return Refuse("'\\S' inside a class");
    if (in_class_) {
      out_ += kSpaces;
    } else {
      out_ += Concat(negated ? "[^" : "[", kSpaces, "]");
    }
    at_ += 2;
  }

  void Escape() {
    const char c = Look(1);
    switch (c) {
      case 's':
      case 'S':
        return Space(c == 'S');
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'd':
      case 'D':
        return Copy(2);
      case 'v':  // PCRE2 takes any vertical space for it
        out_ += "\\x{b}";
        at_ += 2;
        return;
      case 'p':
      case 'P':
        if (Look(2) != '{') return Refuse("a property without braces");
        return Braced();
      case 'u':
        return FourDigits();
      case 'x':
        return Look(2) == '{' ? Braced() : Copy(2);
      default:
        // A backslash before a sign is the sign.
        if (c != '\0' && !std::isalnum(static_cast<unsigned char>(c)) && (c & 0x80) == 0) {
          return Copy(2);
        }
        Refuse(Concat("'", Printable(pattern_.substr(at_, 2)), "'"));
    }
  }

  // \p{...} or \x{...}, whole: its braces are no interval.
  void Braced() {
    const size_t close = pattern_.find('}', at_);
    if (close == std::string_view::npos) return Refuse("'{' without '}'");
    Copy(close + 1 - at_);
  }

  void FourDigits() {
    const std::string_view digits = pattern_.substr(at_ + 2, 4);
    bool valid = digits.size() == 4;
    for (const char digit : digits)
      valid = valid && std::isxdigit(static_cast<unsigned char>(digit));
    if (!valid) return Refuse("'\\u' without four hexadecimal digits");
    out_ += Concat("\\x{", digits, "}");
    at_ += 6;
  }

  std::string_view pattern_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
  Status status_;
};

}  // namespace

Result<std::string> TranslateRegex(std::string_view pattern) {
  if (!IsWellFormed(pattern)) return InvalidArgument("a regular expression must be UTF-8");
  return Translator(pattern).Run();
}

}  // namespace pace
