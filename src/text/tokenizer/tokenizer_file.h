// TokenizerFile: what a tokenizer.json says, read strictly and not yet built.
//
// A key or a component that is not known here is an error that names it and
// its place: nothing in the file is ignored.
#ifndef PACE_TEXT_TOKENIZER_TOKENIZER_FILE_H_
#define PACE_TEXT_TOKENIZER_TOKENIZER_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"

namespace pace {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the space before it
  bool rstrip = false;       // takes the space after it
  bool normalized = true;    // looked for in the normalised text
  bool special = false;      // left out of a decode that skips specials
};

// One normaliser, pre-tokenizer, post-processor or decoder. Fields that its
// type does not have stay at their defaults.
struct TokenizerComponent {
  std::string where;  // "pre_tokenizer.pretokenizers[1]"
  std::string type;
  std::vector<TokenizerComponent> parts;  // of a Sequence
  std::optional<std::string> regex;
  std::optional<std::string> literal;
  std::string behavior;
  bool invert = false;
  bool individual_digits = false;
  bool add_prefix_space = true;
  bool use_regex = true;
  std::optional<std::string> content;     // what Replace puts, what Strip takes
  std::string prepend;                    // of Prepend
  std::string replacement;                // of Metaspace: one character
  std::string prepend_scheme = "always";  // of Metaspace: always, first, never
  bool split = true;                      // of Metaspace
  int64_t start = 0;                      // of Strip: how many at the beginning,
  int64_t stop = 0;                       // and at the end
  // TemplateProcessing for one text: special tokens before and after it.
  std::vector<std::string> prefix;
  std::vector<std::string> suffix;
  std::vector<std::pair<std::string, std::vector<TokenId>>> special_tokens;
};

struct TokenizerFile {
  enum class Model { kBpe, kWordLevel };
  Model model = Model::kBpe;
  std::vector<std::pair<std::string, TokenId>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::optional<std::string> unk_token;
  bool fuse_unk = false;
  bool byte_fallback = false;  // characters the vocabulary lacks become <0x..>
  bool ignore_merges = false;
  std::vector<AddedToken> added_tokens;
  std::optional<TokenizerComponent> normalizer;
  std::optional<TokenizerComponent> pre_tokenizer;
  std::optional<TokenizerComponent> post_processor;
  std::optional<TokenizerComponent> decoder;
};

Result<TokenizerFile> ParseTokenizerFile(std::string_view json);

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_TOKENIZER_FILE_H_
