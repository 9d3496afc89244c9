// WordModel turns one piece of text into token ids: byte-level or
// character-level BPE, or a plain list of words.
//
// BPE starts from single bytes (or characters) and keeps joining the adjacent
// pair that was learned first, the leftmost among equals, until none is left.
//
// Thread-safety: Encode may be called from any thread.
#ifndef PACE_TEXT_TOKENIZER_WORD_MODEL_H_
#define PACE_TEXT_TOKENIZER_WORD_MODEL_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/token_table.h"
#include "text/tokenizer/tokenizer_file.h"

namespace pace {

class WordModel {
 public:
  // `byte_level`: the vocabulary is written in the byte alphabet.
  static Result<std::unique_ptr<WordModel>> Build(const TokenizerFile& file, bool byte_level);
  WordModel(const WordModel&) = delete;
  WordModel& operator=(const WordModel&) = delete;

  // Appends the ids of one piece. Only a list of words can fail: on a word that
  // it lacks, without an unk_token.
  Status Encode(std::string_view piece, std::vector<TokenId>& out) const;

  // The tokens as the file writes them, by id; empty where the file has none.
  const std::vector<std::string>& tokens() const { return tokens_; }
  // The id of a token as the file writes it.
  std::optional<TokenId> Find(std::string_view token) const { return by_name_->Find(token); }

 private:
  WordModel() = default;
  Status ReadVocab(const TokenizerFile& file);
  Status ReadMerges(const TokenizerFile& file);
  void SpellInBytes();
  void FindByteTokens();
  void FirstSymbols(std::string_view piece, std::vector<TokenId>& out) const;
  bool FallBackToBytes(std::string_view character, std::vector<TokenId>& out) const;
  void EncodeBpe(std::string_view piece, std::vector<TokenId>& out) const;

  // What is known about the vocabulary's own spelling of a token: whether BPE
  // gives the one token back. Found out on first use, the same by any thread.
  enum Whole : uint8_t { kUnknown, kYes, kNo };

  bool is_bpe_ = true;
  bool byte_level_ = false;
  bool ignore_merges_ = false;
  bool fuse_unk_ = false;
  bool byte_fallback_ = false;
  std::optional<TokenId> unk_;
  std::vector<std::string> tokens_;
  std::vector<std::string> spelled_;  // byte level: the bytes of each token
  std::optional<TokenTable> by_name_;
  std::optional<TokenTable> by_piece_;
  // Byte level: the token that is this byte. Byte fallback: <0x..>.
  std::array<std::optional<TokenId>, 256> byte_tokens_;
  MergeTable merges_;
  std::unique_ptr<std::atomic<uint8_t>[]> whole_;
};

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_WORD_MODEL_H_
