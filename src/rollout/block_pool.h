// BlockPool: the free blocks of a KV cache, and the number of owners of each other block.
//
// There are exactly num_blocks() blocks.
// Thread-safety: none.
#ifndef PACE_ROLLOUT_BLOCK_POOL_H_
#define PACE_ROLLOUT_BLOCK_POOL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/check.h"
#include "model/decoder.h"

namespace pace {

// Blocks that hold this many tokens.
constexpr int64_t BlocksOf(int64_t num_tokens) {
  return (num_tokens + kBlockTokens - 1) / kBlockTokens;
}

class BlockPool {
 public:
  explicit BlockPool(int64_t num_blocks) : num_owners_(static_cast<size_t>(num_blocks), 0) {
    free_.reserve(num_owners_.size());
    for (auto block = static_cast<BlockId>(num_blocks); block > 0; --block) {
      free_.push_back(block - 1);
    }
  }

  // A free block, now with one owner. The block freed last comes first: it is the likeliest to
  // be in a processor's cache. REQUIRES: num_free() > 0
  BlockId Take() {
    PACE_CHECK(!free_.empty(), "no free block");
    const BlockId block = free_.back();
    free_.pop_back();
    num_owners_[static_cast<size_t>(block)] = 1;
    return block;
  }

  // One more owner. REQUIRES: not free
  void Share(BlockId block) {
    int32_t& num_owners = num_owners_[static_cast<size_t>(block)];
    PACE_CHECK(num_owners > 0, "block ", block, " is shared but free");
    ++num_owners;
  }

  // One owner less; free with the last. REQUIRES: not free
  void Release(BlockId block) {
    int32_t& num_owners = num_owners_[static_cast<size_t>(block)];
    PACE_CHECK(num_owners > 0, "block ", block, " is released twice");
    if (--num_owners == 0) free_.push_back(block);
  }

  int64_t num_blocks() const { return static_cast<int64_t>(num_owners_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  int32_t num_owners(BlockId block) const { return num_owners_[static_cast<size_t>(block)]; }

 private:
  std::vector<int32_t> num_owners_;
  std::vector<BlockId> free_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_BLOCK_POOL_H_
