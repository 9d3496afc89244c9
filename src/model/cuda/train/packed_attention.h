// Causal attention over packed sequences in bf16: the FlashAttention 2 that LibTorch
// brings. (cuDNN's, called through LibTorch in the same way, gave wrong gradients for
// packed sequences, and a step took six times as long.)
// Thread-safety: as LibTorch's operations.
#ifndef PACE_MODEL_CUDA_TRAIN_PACKED_ATTENTION_H_
#define PACE_MODEL_CUDA_TRAIN_PACKED_ATTENTION_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace pace {

// Where sequences begin, and where the last ends: int32 on the GPU.
struct PackedBounds {
  PackedBounds(const std::vector<int64_t>& lengths, at::Device device);
  at::Tensor begins;
  int64_t longest = 0;
};

// [tokens, heads, head_dim]; query heads may be several times as many as the others.
struct AttentionInputs {
  at::Tensor queries;
  at::Tensor keys;
  at::Tensor values;
};
// `kept` is for the backward pass: the output first.
std::vector<at::Tensor> PackedForward(const AttentionInputs& inputs, const PackedBounds& bounds);
AttentionInputs PackedBackward(const AttentionInputs& inputs, const PackedBounds& bounds,
                               const std::vector<at::Tensor>& kept, const at::Tensor& gradient);

}  // namespace pace

#endif  // PACE_MODEL_CUDA_TRAIN_PACKED_ATTENTION_H_
