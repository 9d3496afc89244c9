#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokenizer/regex.h"

#include <pcre2.h>

#include <cctype>
#include <utility>

#include "core/printable.h"
#include "core/utf8.h"

namespace pace {
namespace {

// Enough for any text under the patterns of tokenizers; a pattern made to
// backtrack for ever meets it within a second.
constexpr uint32_t kMatchLimit = 20'000'000;
constexpr size_t kMaxPatternBytes = 1 << 16;
constexpr size_t kMaxJitStackBytes = 8 << 20;

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeJitStack {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

std::string MessageOf(int error) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(error, buffer, sizeof(buffer)) < 0) return Concat("error ", error);
  return reinterpret_cast<const char*>(buffer);
}

// What one search over a text needs beside the pattern.
class Matcher {
 public:
  Matcher(const pcre2_code* code, std::string_view text)
      : code_(code),
        text_(text),
        data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {
    pcre2_set_match_limit(context_.get(), kMatchLimit);
  }

  // 1: found, 0: none, negative: PCRE2's error.
  int FindFrom(size_t at, TextSpan& found) {
    int count = Run(at);
    if (count == PCRE2_ERROR_JIT_STACKLIMIT && stack_ == nullptr) {
      stack_.reset(pcre2_jit_stack_create(1 << 16, kMaxJitStackBytes, nullptr));
      pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
      count = Run(at);
    }
    if (count == PCRE2_ERROR_NOMATCH) return 0;
    if (count < 0) return count;
    const size_t* offsets = pcre2_get_ovector_pointer(data_.get());
    found = {offsets[0], offsets[1]};
    return 1;
  }

 private:
  int Run(size_t at) {
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), at,
                       PCRE2_NO_UTF_CHECK, data_.get(), context_.get());
  }

  const pcre2_code* code_;
  std::string_view text_;
  std::unique_ptr<pcre2_match_data, FreeMatchData> data_;
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context_;
  std::unique_ptr<pcre2_jit_stack, FreeJitStack> stack_;
};

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

struct Regex::Compiled {
  std::unique_ptr<pcre2_code, FreeCode> code;
};

Result<Regex> Regex::Compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return InvalidArgument("a regular expression of ", pattern.size(), " bytes: at most ",
                           kMaxPatternBytes);
  }
  PACE_ASSIGN_OR_RETURN(const std::string translated, TranslateRegex(pattern));
  int error = 0;
  size_t offset = 0;
  pcre2_code* code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    return InvalidArgument("regular expression '", Printable(pattern), "': ", MessageOf(error));
  }
  auto compiled = std::make_shared<Compiled>();
  compiled->code.reset(code);
  // Without JIT the interpreter runs it: slower, the same answers.
  static_cast<void>(pcre2_jit_compile(code, PCRE2_JIT_COMPLETE));
  return Regex(std::move(compiled));
}

Status Regex::FindAll(std::string_view text, std::vector<TextSpan>& out) const {
  Matcher matcher(compiled_->code.get(), text);
  size_t at = 0;
  bool after_match = false;
  size_t last_end = 0;
  while (at <= text.size()) {
    TextSpan found;
    const int result = matcher.FindFrom(at, found);
    if (result < 0) {
      return InvalidArgument("the tokenizer's regular expression on a text of ", text.size(),
                             " bytes: ", MessageOf(result));
    }
    if (result == 0) break;
    const bool empty = found.begin == found.end;
    if (empty && after_match && found.begin == last_end) {
      if (found.end >= text.size()) break;
      at = found.end + ReadCodePoint(text, found.end).num_bytes;
      // Only the place just tried is barred.
      after_match = false;
      continue;
    }
    out.push_back(found);
    after_match = true;
    last_end = found.end;
    at = found.end;
  }
  return Status::Ok();
}

Result<std::string> TranslateRegex(std::string_view pattern) {
  if (!IsWellFormed(pattern)) return InvalidArgument("a regular expression must be UTF-8");
  return Translator(pattern).Run();
}

}  // namespace pace
