#include "model/cpu/kv_cache.h"

#include <cstring>
#include <limits>
#include <utility>

#include "model/cpu/packed_matrix.h"

namespace pace {
namespace {

static_assert(kBlockTokens == kLanes, "sixteen keys of a block are one vector");

// A head's elements are converted through a buffer of this many.
constexpr int64_t kPiece = 64;

}  // namespace

Result<KvCache> KvCache::Create(const ModelConfig& config, Dtype dtype, int64_t num_blocks) {
  KvCache cache;
  cache.num_layers_ = config.num_layers;
  cache.num_blocks_ = num_blocks;
  cache.head_dim_ = config.head_dim;
  cache.padded_dim_ = RoundUp(config.head_dim, kLanes);
  cache.element_bytes_ = BitsPerElement(dtype) / 8;
  const int64_t block_bytes = BlockBytes(config, dtype);
  cache.block_stride_ = block_bytes / config.num_layers;
  cache.head_stride_ = cache.block_stride_ / config.num_kv_heads;
  if (num_blocks > std::numeric_limits<int64_t>::max() / 4 / block_bytes) {
    return InvalidArgument("num_blocks = ", num_blocks, ": blocks of ", block_bytes,
                           " bytes do not fit into any memory");
  }
  Result<AlignedBuffer> memory = AlignedBuffer::Allocate(num_blocks * block_bytes);
  if (!memory.ok()) return memory.status().At("KV cache");
  cache.memory_ = std::move(memory).value();
  return cache;
}

const char* KvCache::Keys(int64_t layer, int64_t kv_head) const {
  return memory_.As<char>() + layer * num_blocks_ * block_stride_ + kv_head * head_stride_;
}

const char* KvCache::Values(int64_t layer, int64_t kv_head) const {
  return Keys(layer, kv_head) + key_bytes();
}

void KvCache::Write(const Kernels& kernels, int64_t layer, int64_t kv_head, BlockId block,
                    int64_t slot, const float* key, const float* value) {
  char* const head = memory_.As<char>() + layer * num_blocks_ * block_stride_ +
                     block * block_stride_ + kv_head * head_stride_;
  char* const values = head + key_bytes() + slot * padded_dim_ * element_bytes_;
  if (!is_bf16()) {
    float* const keys = reinterpret_cast<float*>(head) + slot;
    for (int64_t d = 0; d < head_dim_; ++d) keys[d * kBlockTokens] = key[d];
    std::memcpy(values, value, static_cast<size_t>(head_dim_) * sizeof(float));
    return;
  }
  auto* const keys = reinterpret_cast<uint16_t*>(head) + slot;
  for (int64_t begin = 0; begin < head_dim_; begin += kPiece) {
    uint16_t rounded[kPiece];
    const int64_t n = std::min(kPiece, head_dim_ - begin);
    kernels.to_bf16(key + begin, n, rounded);
    for (int64_t d = 0; d < n; ++d) keys[(begin + d) * kBlockTokens] = rounded[d];
  }
  kernels.to_bf16(value, head_dim_, reinterpret_cast<uint16_t*>(values));
}

void KvCache::Copy(std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies) {
    PACE_CHECK(copy.from >= 0 && copy.from < num_blocks_ && copy.to >= 0 && copy.to < num_blocks_,
               copy.from, " to ", copy.to, " of ", num_blocks_);
    if (copy.from == copy.to) continue;
    for (int64_t layer = 0; layer < num_layers_; ++layer) {
      char* const base = memory_.As<char>() + layer * num_blocks_ * block_stride_;
      std::memcpy(base + copy.to * block_stride_, base + copy.from * block_stride_,
                  static_cast<size_t>(block_stride_));
    }
  }
}

}  // namespace pace
