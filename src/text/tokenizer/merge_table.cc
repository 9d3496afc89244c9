#include "text/tokenizer/merge_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>
#include <tuple>

namespace pace {
namespace {

// Up to here, looking at every pair again is faster than keeping a queue.
constexpr size_t kMaxShort = 32;

}  // namespace

void MergeTable::Reset(size_t num_merges) {
  slots_.assign(std::bit_ceil(num_merges * 2 + 2), Slot());
  mask_ = slots_.size() - 1;
}

void MergeTable::Insert(TokenId left, TokenId right, Merge merge) {
  const uint64_t key = KeyOf(left, right);
  size_t at = HomeOf(key);
  while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask_;
  slots_[at] = {key, merge};
}

void MergeTable::Apply(std::vector<TokenId>& symbols) const {
  if (symbols.size() < 2 || slots_.empty()) return;
  symbols.size() <= kMaxShort ? ApplyToShort(symbols) : ApplyToLong(symbols);
}

void MergeTable::ApplyToShort(std::vector<TokenId>& symbols) const {
  std::array<Merge, kMaxShort> pairs;
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = Find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (!pairs[best].joins()) break;
    symbols[best] = pairs[best].joined;
    --count;
    for (size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best > 0) pairs[best - 1] = Find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) pairs[best] = Find(symbols[best], symbols[best + 1]);
  }
  symbols.resize(count);
}

// A queue of candidate pairs over a linked list; one that no longer stands when
// its turn comes is passed over.
void MergeTable::ApplyToLong(std::vector<TokenId>& symbols) const {
  const size_t size = symbols.size();
  constexpr TokenId kGone = INT32_MIN;
  std::vector<size_t> next(size);
  std::vector<size_t> previous(size);
  using Candidate = std::tuple<uint32_t, size_t, TokenId, TokenId, TokenId>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](size_t left, size_t right) {
    const Merge merge = Find(symbols[left], symbols[right]);
    if (merge.joins()) queue.emplace(merge.rank, left, symbols[left], symbols[right], merge.joined);
  };
  for (size_t i = 0; i < size; ++i) {
    next[i] = i + 1;
    previous[i] = i;  // the first is its own predecessor
    if (i > 0) previous[i] = i - 1;
  }
  for (size_t i = 0; i + 1 < size; ++i) offer(i, i + 1);
  while (!queue.empty()) {
    const auto [rank, at, left, right, joined] = queue.top();
    queue.pop();
    const size_t behind = next[at];
    if (symbols[at] != left || behind >= size || symbols[behind] != right) continue;
    symbols[at] = joined;
    symbols[behind] = kGone;
    next[at] = next[behind];
    if (next[at] < size) {
      previous[next[at]] = at;
      offer(at, next[at]);
    }
    if (at > 0) offer(previous[at], at);
  }
  std::erase(symbols, kGone);
}

}  // namespace pace
