// Normalizer rewrites a text before it is cut into pieces: normal forms of
// Unicode, a prefix, replacements.
//
// Thread-safety: immutable.
#ifndef PACE_TEXT_TOKENIZER_NORMALIZER_H_
#define PACE_TEXT_TOKENIZER_NORMALIZER_H_

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/status.h"
#include "text/characters.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/tokenizer_file.h"

namespace pace {

// Replaces every match of a pattern by one fixed text, in normalisers and decoders.
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

class Normalizer {
 public:
  // None: every text stays as it is.
  Normalizer() = default;
  static Result<Normalizer> Build(const TokenizerComponent& component);

  // True only if Apply would certainly change nothing.
  bool Keeps(std::string_view text) const;

  // Fails only where a regular expression does not come to an end.
  // REQUIRES: text is well-formed UTF-8
  Result<std::string> Apply(std::string_view text) const;

 private:
  // In front of any text but the empty one.
  struct Prefix {
    std::string text;
  };
  using Step = std::variant<NormalForm, Prefix, TextReplacement>;

  Status Add(const TokenizerComponent& component);

  std::vector<Step> steps_;
};

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_NORMALIZER_H_
