// AttendRows: the attention of gradient/packed_attention.h as a
// differentiable operation.
// Thread-safety: one call, forward or backward, at a time for one SharedAttention.
#ifndef PACE_MODEL_TORCH_ATTENTION_FUNCTION_H_
#define PACE_MODEL_TORCH_ATTENTION_FUNCTION_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "model/cpu/gradient/packed_attention.h"
#include "model/model_config.h"

namespace pace {

// The attention of one packed batch, for all its layers; autograd keeps it until
// the backward pass is done.
struct SharedAttention : torch::CustomClassHolder {
  // cos and sin [tokens, 1, head_dim / 2], float32
  SharedAttention(const ModelConfig& config, const std::vector<int64_t>& lengths,
                  const at::Tensor& cos, const at::Tensor& sin);

  const int64_t num_heads;
  const int64_t head_dim;
  const at::Tensor cosines;
  const at::Tensor sines;
  PackedAttention attention;
};

// [tokens, heads * head_dim] of rows that hold query, key and value heads, in
// float32 or bf16 on the CPU. Norms of query and key heads are float32, or undefined.
at::Tensor AttendRows(const at::Tensor& qkv, const at::Tensor& query_norm,
                      const at::Tensor& key_norm,
                      const c10::intrusive_ptr<SharedAttention>& attention);

}  // namespace pace

#endif  // PACE_MODEL_TORCH_ATTENTION_FUNCTION_H_
