// The tokenizer of generated tasks: one token per character, one for the answer
// marker, one for the end, in the tokenizer.json form that every model uses.
//
//   Result<Tokenizer> tokenizer = Tokenizer::Parse(CharacterTokenizerJson());
//
// Any other character is an error rather than an unknown token: it could not
// come from these tasks. Ids never change: base models rely on them.
//
// Thread-safety: a function without state.
#ifndef PACE_TASK_CHARACTER_TOKENIZER_H_
#define PACE_TASK_CHARACTER_TOKENIZER_H_

#include <string>
#include <string_view>

#include "core/token_id.h"

namespace pace {

inline constexpr std::string_view kPadToken = "<pad>";
inline constexpr std::string_view kEndToken = "<eos>";
inline constexpr TokenId kPadTokenId = 0;
inline constexpr TokenId kEndTokenId = 1;
// kAnswerMarker of synthetic_task.h, no special token: decoding keeps it.
inline constexpr TokenId kAnswerMarkerId = 2;
// The characters have the ids after it, in this order.
inline constexpr std::string_view kTaskCharacters = "0123456789+-*=,";
inline constexpr TokenId kFirstCharacterId = 3;
inline constexpr TokenId kNumCharacterTokens = 18;

std::string CharacterTokenizerJson();

}  // namespace pace

#endif  // PACE_TASK_CHARACTER_TOKENIZER_H_
