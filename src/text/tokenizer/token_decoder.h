// TokenDecoder turns tokens back into text, as the decoder of a tokenizer.json
// says.
//
// Supported: no decoder (a space between tokens), ByteLevel, Replace, Metaspace,
// ByteFallback, Fuse, and Strip of the text's beginning. An order of them whose
// text cannot be told token by token is refused by name.
//
// What an id adds depends on the ids before it: the first may lose its space,
// and byte tokens (<0xE2>) become characters only if their whole run is
// well-formed; each byte of a run that is not becomes U+FFFD.
//
// Thread-safety: immutable after the last Add.
#ifndef PACE_TEXT_TOKENIZER_TOKEN_DECODER_H_
#define PACE_TEXT_TOKENIZER_TOKEN_DECODER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_file.h"

namespace pace {

class TokenDecoder {
 public:
  static Result<TokenDecoder> Build(const std::optional<TokenizerComponent>& component);

  // The token of an id; a later one replaces an earlier one.
  Status Add(TokenId id, std::string_view token, bool special);

  // Appends what is settled once `id` has come. The bytes may end inside a
  // character (ByteLevel). Ids without a token add nothing.
  void Feed(TokenId id, bool skip_special, DecodeProgress& progress, std::string& out) const;
  // Appends what only the end settles.
  void Finish(DecodeProgress& progress, std::string& out) const;

  // The bytes of one id, unsettled as they are (see Tokenizer::AppendBytes).
  bool AppendBytes(TokenId id, bool skip_special, bool is_first, std::string& out) const;

  bool IsSpecial(TokenId id) const;
  // One more than the largest id.
  int64_t num_ids() const { return static_cast<int64_t>(tokens_.size()); }

 private:
  // Each replacement character becomes a space; in the first token it vanishes.
  struct Metaspace {
    std::string replacement;
    bool drops_first = true;
  };
  struct ByteAlphabet {};
  using Step = std::variant<TextReplacement, Metaspace, ByteAlphabet>;

  struct Token {
    bool known = false;
    bool special = false;
    std::optional<char> byte;
    std::string text;
    std::string first_text;  // as the first token; only where Metaspace drops
  };

  // Steps come in this order: of one token, of byte tokens, of the whole text.
  enum class Stage { kTokens, kBytes, kFused, kStripped };

  Status AddStep(const TokenizerComponent& component, Stage& stage);
  Status AddTokenStep(const TokenizerComponent& component);
  Status AddStrip(const TokenizerComponent& component);
  Result<std::string> TextOf(std::string_view token, bool is_first) const;
  // Null where the id adds nothing.
  const Token* Find(TokenId id, bool skip_special) const;
  void Append(std::string_view text, DecodeProgress& progress, std::string& out) const;
  void EndRun(DecodeProgress& progress, std::string& out) const;

  std::vector<Step> steps_;
  bool space_between_ = false;
  bool byte_fallback_ = false;
  bool drops_first_ = false;
  std::string strip_;  // the character, and how many of it at most
  int64_t max_stripped_ = 0;
  std::vector<Token> tokens_;
};

// The byte alphabet of byte-level tokenizers: each byte has one printable character, so that any
// bytes can be written as text in a vocabulary.
// The character of a byte.
uint32_t CharacterOfByte(unsigned char byte);

// The bytes that a token spells; none if one of its characters is outside the
// alphabet.
std::optional<std::string> BytesOfToken(std::string_view token);

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_TOKEN_DECODER_H_
