// KvCache: keys and values of all layers, in blocks of kBlockTokens tokens.
//
// [layer][block][kv head]: keys [head_dim][16 tokens], then values
// [16 tokens][head_dim rounded up to 16], in float or bf16. Sixteen keys are one
// vector, and so are sixteen elements of a value.
// Thread-safety: different tokens may be written at once; else as a plain array.
#ifndef PACE_MODEL_CPU_KV_CACHE_H_
#define PACE_MODEL_CPU_KV_CACHE_H_

#include <cstdint>
#include <span>

#include "core/status.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/kernels/kernels.h"
#include "model/decoder.h"

namespace pace {

class KvCache {
 public:
  // Zeroed; exactly num_blocks * BlockBytes bytes. Fails without that memory.
  static Result<KvCache> Create(const ModelConfig& config, Dtype dtype, int64_t num_blocks);

  int64_t num_blocks() const { return num_blocks_; }
  bool is_bf16() const { return element_bytes_ == 2; }
  int64_t head_dim() const { return head_dim_; }
  int64_t padded_dim() const { return padded_dim_; }

  // Of block 0; block i lies i * block_stride() bytes further.
  const char* Keys(int64_t layer, int64_t kv_head) const;
  const char* Values(int64_t layer, int64_t kv_head) const;
  int64_t block_stride() const { return block_stride_; }

  // Puts one head's key and value at slot `slot` of a block.
  void Write(const Kernels& kernels, int64_t layer, int64_t kv_head, BlockId block, int64_t slot,
             const float* key, const float* value);
  void Copy(std::span<const BlockCopy> copies);

 private:
  KvCache() = default;
  int64_t key_bytes() const { return head_dim_ * kBlockTokens * element_bytes_; }

  int64_t num_layers_ = 0;
  int64_t num_blocks_ = 0;
  int64_t head_dim_ = 0;
  int64_t padded_dim_ = 0;
  int64_t element_bytes_ = 0;
  int64_t head_stride_ = 0;   // bytes
  int64_t block_stride_ = 0;  // bytes, within a layer
  AlignedBuffer memory_;
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_KV_CACHE_H_
