#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokenizer/regex.h"

#include <pcre2.h>

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

}  // namespace pace
