// TokenizerSpec: a tokenizer as another format describes it, and the files of a
// Hugging Face folder that say the same.
// Thread-safety: values and pure functions.
#ifndef PACE_CONVERT_TOKENIZER_SPEC_H_
#define PACE_CONVERT_TOKENIZER_SPEC_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// Sequences count by their steps, however they nest: a sequence of one step is
// that step. Offsets and places in the file do not count.
bool SameComponent(const std::optional<TokenizerComponent>& a,
                   const std::optional<TokenizerComponent>& b);

// A file that has only these components, given in JSON. REQUIRES: they are valid
TokenizerFile FileOfComponents(std::string_view normalizer, std::string_view pre_tokenizer,
                               std::string_view decoder);

// How the vocabulary writes a space.
enum class SpaceMark {
  kSpace,    // as it is: llama2.c
  kLowLine,  // as U+2581: SentencePiece itself
};

inline constexpr std::string_view kLowLineMark = "\u2581";

// Sets normaliser, decoder and the rule for unknown characters. `add_space`: a
// text begins with a space of its own, which decoding takes away.
void PutSentencePiece(SpaceMark mark, bool add_space, TokenizerSpec& spec);

// The merges of BPE from the scores of a SentencePiece vocabulary.
//
// SentencePiece, llama.cpp and llama2.c join the adjacent pair whose joined token has the highest
// score, the leftmost among equals. BPE joins the pair of the lowest rank. So every way to make a
// token of two others becomes a merge, in falling order of the token's score, then of its id.
//
// The ways to make one token have equal scores, and BPE must order them where the others take the
// leftmost. Two of them can meet in x y z only if x + y = y + z; the one that begins with x then
// comes first, unless the token repeats one word and both orders are needed (x = z); then the
// longer left part comes first, which is right for what joining from the left leaves.
// REQUIRES: as many scores as tokens, none NaN; tokens are UTF-8, each once
std::vector<std::pair<std::string, std::string>> MergesFromScores(
    std::span<const std::string> tokens, std::span<const float> scores);

// The pre-tokenizers that GGUF names (tokenizer.ggml.pre), as tokenizer.json
// writes them.
//
// A GGUF file holds a byte-level vocabulary with its merges, but of the regular
// expressions before it only a name. These are the names whose pipeline is known
// here, as the models' own tokenizer.json have it; `default` is llama.cpp's own.
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

#endif  // PACE_CONVERT_TOKENIZER_SPEC_H_
