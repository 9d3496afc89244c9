// TokenizerSpec: a tokenizer as another format describes it, and the files of a
// Hugging Face folder that say the same.
// Thread-safety: values and pure functions.
#ifndef PACE_CONVERT_TOKENIZER_SPEC_H_
#define PACE_CONVERT_TOKENIZER_SPEC_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "text/tokenizer/tokenizer_file.h"

namespace pace {

// A file of a folder that is written as it is.
struct FolderText {
  std::string name;
  std::string text;
};

struct TokenizerSpec {
  std::vector<std::string> tokens;  // by id; each once, UTF-8
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<AddedToken> added;

  // The components in JSON.
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string decoder = "null";

  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;

  std::optional<TokenId> unk;
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> pad;
  bool add_bos = false;  // a text begins with it
  bool add_eos = false;
  std::optional<std::string> chat_template;
};

// tokenizer.json and tokenizer_config.json. An error where our own tokenizer
// does not take the result, or a special token is none of the tokens.
Result<std::vector<FolderText>> TokenizerFiles(const TokenizerSpec& spec);

}  // namespace pace

#endif  // PACE_CONVERT_TOKENIZER_SPEC_H_
