// TextReplacement: replaces every match of a pattern by one fixed text.
//
// Thread-safety: immutable.
#ifndef PACE_TEXT_TOKENIZER_TEXT_REPLACEMENT_H_
#define PACE_TEXT_TOKENIZER_TEXT_REPLACEMENT_H_

#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/tokenizer_file.h"

namespace pace {

class TextReplacement {
 public:
  // From a component of type Replace, a normaliser or a decoder.
  static Result<TextReplacement> Build(const TokenizerComponent& component);

  // Fails only where a regular expression does not come to an end.
  // REQUIRES: text is well-formed UTF-8
  Result<std::string> Apply(std::string_view text) const;

 private:
  TextReplacement() = default;

  std::optional<Regex> regex_;
  std::string literal_;  // without a regex; an empty one matches nowhere
  std::string content_;
};

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_TEXT_REPLACEMENT_H_
