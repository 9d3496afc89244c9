// The pre-tokenizers that GGUF names (tokenizer.ggml.pre), as tokenizer.json
// writes them.
//
// A GGUF file holds a byte-level vocabulary with its merges, but of the regular
// expressions before it only a name. These are the names whose pipeline is known
// here, as the models' own tokenizer.json have it; `default` is llama.cpp's own.
// Thread-safety: pure functions.
#ifndef PACE_CONVERT_GGUF_PRE_TOKENIZERS_H_
#define PACE_CONVERT_GGUF_PRE_TOKENIZERS_H_

#include <string>
#include <string_view>

#include "text/tokenizer/tokenizer_file.h"

namespace pace {

struct GgufPreTokenizer {
  std::string_view name;
  std::string_view normalizer;     // JSON
  std::string_view pre_tokenizer;  // JSON
  bool ignore_merges = false;
  bool add_bos = false;  // unless the file says
};

// Null for a name that is not known here.
const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name);

// The one whose pipeline a tokenizer.json has; null if it has another.
const GgufPreTokenizer* GgufPreTokenizerOf(const TokenizerFile& file);

// "gpt-2, llama-bpe, ...", for messages.
std::string GgufPreTokenizerNames();

}  // namespace pace

#endif  // PACE_CONVERT_GGUF_PRE_TOKENIZERS_H_
