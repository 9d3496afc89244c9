// TokenTable: from the bytes of a token to its id, by open addressing.
//
// The tokens themselves stay with the caller, one string per id; the table
// keeps ids alone. Thread-safety: immutable after the last Insert.
#ifndef PACE_TEXT_TOKENIZER_TOKEN_TABLE_H_
#define PACE_TEXT_TOKENIZER_TOKEN_TABLE_H_

#include <bit>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/token_id.h"

namespace pace {

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

}  // namespace pace

#endif  // PACE_TEXT_TOKENIZER_TOKEN_TABLE_H_
