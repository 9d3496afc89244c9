// PreTokenizer cuts a text into the pieces that the model encodes one by one.
//
// Thread-safety: immutable.
#ifndef PACE_TEXT_TOKENIZER_PRE_TOKENIZER_H_
#define PACE_TEXT_TOKENIZER_PRE_TOKENIZER_H_

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/tokenizer_file.h"

namespace pace {

// Views of the text given, or of `owned` where a piece was changed.
struct TextPieces {
  std::vector<std::string_view> views;
  std::deque<std::string> owned;
};

class PreTokenizer {
 public:
  // None: the whole text is one piece.
  PreTokenizer() = default;
  static Result<PreTokenizer> Build(const TokenizerComponent& component);

  // Whether the model sees bytes (ByteLevel) rather than characters.
  bool byte_level() const { return byte_level_; }

  // `at_start`: nothing of the input comes before this text. Empty pieces are
  // left out. The views live as long as text and `out`.
  // REQUIRES: text is well-formed UTF-8
  Status Split(std::string_view text, bool at_start, TextPieces& out) const;

 private:
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };
  enum class Prefix { kNever, kAtStart, kAlways };
  struct Step {
    std::optional<std::string> space;  // what becomes of spaces, before anything else
    Prefix prefix = Prefix::kNever;    // such a space in front, where none is
    std::optional<Regex> regex;        // neither: no cut
    std::optional<std::string> literal;
    Behavior behavior = Behavior::kIsolated;
    bool invert = false;
  };

  struct Part {
    TextSpan span;
    bool is_match = false;
  };

  Status Add(const TokenizerComponent& component);
  Status AddSplit(const TokenizerComponent& component);
  Status AddMetaspace(const TokenizerComponent& component);
  static Status FindParts(const Step& step, std::string_view piece, std::vector<Part>& out);
  static void Arrange(const Step& step, std::vector<Part>& parts);
  static std::string_view Respace(const Step& step, std::string_view piece, bool at_start,
                                  TextPieces& out);
  static Status Apply(const Step& step, std::string_view piece, bool at_start, TextPieces& out);

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_PRE_TOKENIZER_H_
