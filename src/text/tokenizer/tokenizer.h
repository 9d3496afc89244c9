// Tokenizer: text to token ids and back, as a tokenizer.json defines it.
//
// Encoding: take out added tokens, normalise what lies between, cut it into
// pieces, encode each piece. Decoding joins the tokens' bytes; each maximal
// ill-formed part becomes one U+FFFD.
//
// Supported: byte-level BPE (the families Qwen2.5, Qwen3, Llama 3, SmolLM2,
// GPT-2), character-level BPE with byte fallback (SentencePiece as Llama 2 and
// TinyLlama have it) and WordLevel; normal forms, Prepend, Replace; Split,
// Digits, ByteLevel, Metaspace; TemplateProcessing; the decoders ByteLevel,
// Replace, Metaspace, ByteFallback, Fuse, Strip. Whatever else a file asks for
// is refused by name when it is loaded.
//
// A character tokenizer for small models is a file like this:
//
//   {"version": "1.0", "added_tokens": [{"id": 0, "content": "<eos>", ...}],
//    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""},
//                      "behavior": "Isolated", "invert": false},
//    "decoder": {"type": "Fuse"},
//    "model": {"type": "WordLevel", "vocab": {"<eos>": 0, "a": 1, ...},
//              "unk_token": "<eos>"}}
//
// Thread-safety: immutable; copies share one state.
#ifndef PACE_TEXT_TOKENIZER_TOKENIZER_H_
#define PACE_TEXT_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"

namespace pace {

// How far a decode has come, for Tokenizer::Feed.
struct DecodeProgress {
  bool has_token = false;
  bool has_text = false;     // nothing more is stripped
  int64_t num_stripped = 0;  // characters
  std::string bytes;         // of the run of byte tokens that is not over
};

class Tokenizer {
 public:
  // Reads `directory`/tokenizer.json.
  static Result<Tokenizer> Load(const std::string& directory);
  // The same from the file's content.
  static Result<Tokenizer> Parse(std::string_view json);

  // Ill-formed UTF-8 is replaced by U+FFFD first. With `add_special_tokens` the
  // file's template is applied (a begin-of-text token, say). Fails only where
  // the file cannot encode the text: a word outside a WordLevel vocabulary, or
  // a regular expression that does not come to an end.
  Result<std::vector<TokenId>> Encode(std::string_view text, bool add_special_tokens = false) const;

  // Ids outside the vocabulary decode to nothing.
  std::string Decode(std::span<const TokenId> ids, bool skip_special = false) const;

  // A decode id by id (see token_decoder.h; StreamDecoder keeps characters
  // whole): Feed appends what is settled once `id` has come, Finish the rest.
  void Feed(TokenId id, bool skip_special, DecodeProgress& progress, std::string& out) const;
  void Finish(DecodeProgress& progress, std::string& out) const;

  // Appends the bytes of one id at once, for those who look for a text before the
  // decode settles: a byte token gives its byte whatever its run comes to, and
  // nothing is stripped. Returns whether the id has a token.
  bool AppendBytes(TokenId id, bool skip_special, bool is_first, std::string& out) const;

  // The id of a token as the file writes it, added tokens included.
  std::optional<TokenId> Find(std::string_view token) const;
  bool IsSpecial(TokenId id) const;
  // One more than the largest id.
  int64_t num_ids() const;

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

// StreamDecoder turns ids into text as they come, and never splits a character.
//
//   StreamDecoder stream(tokenizer, /*skip_special=*/true);
//   for (const TokenId id : ids) if (auto text = stream.Feed(id)) Show(*text);
//   Show(stream.Finish());
//
// Text is held back while it ends in an unfinished character or in a run of byte
// tokens, which the next token may spoil; all that was handed out, Finish
// included, is the decode of all ids.
// Thread-safety: none.
class StreamDecoder {
 public:
  StreamDecoder(Tokenizer tokenizer, bool skip_special)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  // The text that this id completes; none if there is nothing to show yet.
  std::optional<std::string> Feed(TokenId id);
  // What was held back; an unfinished character becomes U+FFFD. The next Feed
  // begins a new text.
  std::string Finish();

 private:
  std::string TakePending();

  Tokenizer tokenizer_;
  bool skip_special_;
  DecodeProgress progress_;
  std::string pending_;
};

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_TOKENIZER_H_
