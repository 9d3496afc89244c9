// A tokenizer.json of whole tokens and single characters, for generated tasks.
//
// Ids count up from 0: the whole tokens in their order, then the characters.
// Thread-safety: a function of its argument.
#ifndef PACE_TASK_CHARACTER_VOCABULARY_H_
#define PACE_TASK_CHARACTER_VOCABULARY_H_

#include <string>
#include <string_view>
#include <vector>

namespace pace {

struct WholeToken {
  std::string_view text;
  bool special = false;  // decoding may leave it out
};

struct CharacterVocabulary {
  std::vector<WholeToken> tokens;
  std::string_view characters;
  // The whole token that stands for any other character; empty: those are an error.
  std::string_view unknown = {};
};

std::string TokenizerJson(const CharacterVocabulary& vocabulary);

}  // namespace pace

#endif  // PACE_TASK_CHARACTER_VOCABULARY_H_
