// AddedTokens finds the tokens that are taken out of a text before anything
// else: <|im_start|>, <tool_call> and the like.
//
// From left to right, the longest at each place. Tokens marked `normalized` are
// looked for in the normalised text between the others.
//
// Thread-safety: immutable.
#ifndef PACE_TEXT_TOKENIZER_ADDED_TOKENS_H_
#define PACE_TEXT_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/token_id.h"
#include "text/tokenizer/tokenizer_file.h"

namespace pace {

// A stretch of text, or one added token.
struct TextSection {
  std::string_view text;
  std::optional<TokenId> token;
};

class AddedTokens {
 public:
  // `tokens` as they are to be found: content normalised where that applies.
  explicit AddedTokens(std::vector<AddedToken> tokens = {});

  // The sections in order, the added tokens among them; empty text is left out.
  void Split(std::string_view text, std::vector<TextSection>& out) const;

 private:
  // The token that begins exactly here, the longest; none if there is none.
  const AddedToken* LongestAt(std::string_view text, size_t at) const;
  size_t FindCandidate(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;                        // the longest first
  std::array<std::vector<uint32_t>, 256> by_first_byte_;  // in that order
  std::string first_bytes_;
};

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_ADDED_TOKENS_H_
