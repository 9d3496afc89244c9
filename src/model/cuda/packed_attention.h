// Causal attention over packed sequences in bf16, by the libraries that LibTorch
// brings: FlashAttention 2, or cuDNN, which is faster on Hopper but plans anew for
// each number and greatest length of sequences; both are rounded up, so that few
// plans are made.
// Thread-safety: as LibTorch's operations; the choice is one for the process.
#ifndef PACE_MODEL_CUDA_PACKED_ATTENTION_H_
#define PACE_MODEL_CUDA_PACKED_ATTENTION_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace pace {

enum class AttentionLibrary { kFlash, kCudnn };
// What the following forward passes use.
void UseAttention(AttentionLibrary library);

// Where sequences begin, and where the last ends: int32 on the GPU, as each library
// wants it.
struct PackedBounds {
  PackedBounds(const std::vector<int64_t>& lengths, at::Device device);
  at::Tensor begins;
  int64_t longest = 0;
  at::Tensor rounded_begins;  // with empty sequences at the end
  int64_t rounded_longest = 0;
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

#endif  // PACE_MODEL_CUDA_PACKED_ATTENTION_H_
