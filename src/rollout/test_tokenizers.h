// Small tokenizers for tests.
#ifndef PACE_ROLLOUT_TEST_TOKENIZERS_H_
#define PACE_ROLLOUT_TEST_TOKENIZERS_H_

#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace pace {

// Ids 0, 1, ... stand for these words, which are joined without a space. They
// need no escape in JSON. `special` is one more, special, token.
inline Tokenizer WordTokenizer(const std::vector<std::string>& words,
                               const std::string& special = "<end>") {
  std::string vocab;
  for (size_t i = 0; i < words.size(); ++i) vocab += Concat("\"", words[i], "\":", i, ",");
  Result<Tokenizer> tokenizer = Tokenizer::Parse(Concat(
      R"({"version": "1.0", "added_tokens": [{"id": )", words.size(), R"(, "content": ")", special,
      R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,)",
      R"( "special": true}], "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""},)",
      R"( "behavior": "Isolated", "invert": false}, "decoder": {"type": "Fuse"},)",
      R"( "model": {"type": "WordLevel", "vocab": {)", vocab, "\"", special, "\":", words.size(),
      R"(}, "unk_token": ")", special, R"("}})"));
  return std::move(tokenizer).value();
}

// One letter each: a, b, c, ...
inline Tokenizer LetterTokenizer(int64_t num_letters) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < num_letters; ++i) words.emplace_back(1, static_cast<char>('a' + i));
  return WordTokenizer(words);
}

}  // namespace pace

#endif  // PACE_ROLLOUT_TEST_TOKENIZERS_H_
