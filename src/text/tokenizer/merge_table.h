// MergeTable: which pairs of tokens BPE joins, in which order.
//
// Thread-safety: immutable after the last Insert.
#ifndef PACE_TEXT_TOKENIZER_MERGE_TABLE_H_
#define PACE_TEXT_TOKENIZER_MERGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/token_id.h"

namespace pace {

struct Merge {
  uint32_t rank = UINT32_MAX;  // the largest: these two do not join
  TokenId joined = 0;

  bool joins() const { return rank != UINT32_MAX; }
};

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

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_MERGE_TABLE_H_
