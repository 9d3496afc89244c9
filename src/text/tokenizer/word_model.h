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
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/token_id.h"
#include "text/tokenizer/tokenizer_file.h"

namespace pace {

// From the bytes of a token to its id, by open addressing. The tokens themselves stay with the
// caller, one string per id. Immutable after the last Insert.
class TokenTable {
 public:
  // Borrows the tokens: they must outlive the table and not change.
  TokenTable(const std::vector<std::string>& tokens, size_t num_entries)
      : tokens_(&tokens), slots_(std::bit_ceil(num_entries * 2 + 2), kEmpty) {}

  // False if another id has the same bytes; the table is then unchanged.
  bool Insert(TokenId id) {
    const size_t at = SlotOf((*tokens_)[static_cast<size_t>(id)]);
    if (slots_[at] != kEmpty) return slots_[at] == id;
    slots_[at] = id;
    return true;
  }

  std::optional<TokenId> Find(std::string_view bytes) const {
    const TokenId id = slots_[SlotOf(bytes)];
    return id == kEmpty ? std::nullopt : std::optional<TokenId>(id);
  }

 private:
  static constexpr TokenId kEmpty = INT32_MIN;

  // The slot of these bytes, or the free one where they belong.
  size_t SlotOf(std::string_view bytes) const {
    const size_t mask = slots_.size() - 1;
    size_t at = std::hash<std::string_view>()(bytes) & mask;
    while (slots_[at] != kEmpty && (*tokens_)[static_cast<size_t>(slots_[at])] != bytes) {
      at = (at + 1) & mask;
    }
    return at;
  }

  const std::vector<std::string>* tokens_;
  std::vector<TokenId> slots_;
};

struct Merge {
  uint32_t rank = UINT32_MAX;  // the largest: these two do not join
  TokenId joined = 0;

  bool joins() const { return rank != UINT32_MAX; }
};

// Which pairs of tokens BPE joins, in which order. Immutable after the last Insert.
class MergeTable {
 public:
  // Makes room; what it held is gone.
  void Reset(size_t num_merges);
  // A later rank for the same pair replaces the earlier one.
  void Insert(TokenId left, TokenId right, Merge merge);
  Merge Find(TokenId left, TokenId right) const {
    if (slots_.empty()) return {};
    const uint64_t key = KeyOf(left, right);
    for (size_t at = HomeOf(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].merge;
      if (slots_[at].key == kEmpty) return {};
    }
  }

  // Joins until nothing joins.
  void Apply(std::vector<TokenId>& symbols) const;

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };

  static uint64_t KeyOf(TokenId left, TokenId right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
           static_cast<uint32_t>(right);
  }
  size_t HomeOf(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask_;
  }
  void ApplyToShort(std::vector<TokenId>& symbols) const;
  void ApplyToLong(std::vector<TokenId>& symbols) const;

  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

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
