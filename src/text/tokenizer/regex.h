// Regex: a regular expression in the dialect of tokenizer.json (Oniguruma),
// run by PCRE2.
//
// The two dialects agree on what tokenizers use and disagree at the edges: what
// counts as space, possessive intervals, class operators. The pattern is
// therefore read and rewritten first; a construct whose meaning differs or is
// not known here is refused by name and column.
//
// Thread-safety: immutable; FindAll may be called from any thread.
#ifndef PACE_TEXT_TOKENIZER_REGEX_H_
#define PACE_TEXT_TOKENIZER_REGEX_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pace {

// A stretch of bytes of a text.
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

class Regex {
 public:
  static Result<Regex> Compile(std::string_view pattern);

  // All matches of a well-formed text from left to right, none overlapping. An
  // empty match directly after a match is left out. A pattern that
  // needs too many steps on this text is an error.
  Status FindAll(std::string_view text, std::vector<TextSpan>& out) const;

 private:
  struct Compiled;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

// The pattern as PCRE2 has to be given it.
Result<std::string> TranslateRegex(std::string_view pattern);

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_REGEX_H_
