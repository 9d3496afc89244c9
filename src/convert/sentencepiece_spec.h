// The components of a SentencePiece tokenizer in tokenizer.json.
#ifndef PACE_CONVERT_SENTENCEPIECE_SPEC_H_
#define PACE_CONVERT_SENTENCEPIECE_SPEC_H_

#include <string_view>

#include "convert/tokenizer_spec.h"

namespace pace {

// How the vocabulary writes a space.
enum class SpaceMark {
  kSpace,    // as it is: llama2.c
  kLowLine,  // as U+2581: SentencePiece itself
};

inline constexpr std::string_view kLowLineMark = "\u2581";

// Sets normaliser, decoder and the rule for unknown characters. `add_space`: a
// text begins with a space of its own, which decoding takes away.
void PutSentencePiece(SpaceMark mark, bool add_space, TokenizerSpec& spec);

}  // namespace pace

#endif  // PACE_CONVERT_SENTENCEPIECE_SPEC_H_
