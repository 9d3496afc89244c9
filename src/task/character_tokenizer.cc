#include "task/character_tokenizer.h"

#include "task/character_vocabulary.h"
#include "task/synthetic_task.h"

namespace pace {

static_assert(kFirstCharacterId + static_cast<TokenId>(kTaskCharacters.size()) ==
              kNumCharacterTokens);

std::string CharacterTokenizerJson() {
  return TokenizerJson({.tokens = {{kPadToken, true}, {kEndToken, true}, {kAnswerMarker, false}},
                        .characters = kTaskCharacters});
}

}  // namespace pace
