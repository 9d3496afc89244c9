// cuDNN's attention over packed sequences: graphs of its frontend with ragged tensors.
//
// A plan is made at its first use, in some 0.1 s, and kept. cuda_attention.h is what uses it;
// where the build lacks the frontend, HasCudnnAttention is false and the rest is never called.
// Thread-safety: any thread; work is queued on LibTorch's current stream.
#ifndef PACE_MODEL_CUDA_TRAIN_CUDNN_ATTENTION_H_
#define PACE_MODEL_CUDA_TRAIN_CUDNN_ATTENTION_H_

#include <ATen/ATen.h>

#include <compare>
#include <cstdint>
#include <vector>

namespace pace {

// [tokens, heads, head_dim]; query heads may be several times as many as the others. Queries and
// keys are contiguous, rows of values may lie further apart.
struct AttentionInputs {
  at::Tensor queries;
  at::Tensor keys;
  at::Tensor values;
};

struct AttentionHeads {
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t value_stride = 0;  // between the rows of values, in elements
};

// What plans are made for: the numbers of a batch, rounded up, so that few plans serve a run.
struct AttentionPlanSize {
  int64_t num_sequences = 0;
  int64_t longest = 0;
  int64_t num_rows = 0;
  auto operator<=>(const AttentionPlanSize&) const = default;
};
// Whether cuDNN has plans for both directions; makes them.
bool HasCudnnAttention(const AttentionHeads& heads, const AttentionPlanSize& size);
// `offsets`: int32 rows of where each sequence begins in elements (of queries, keys, values,
// statistics), padded to the plan, then the lengths. Returns the output and the statistics of its
// softmax, which are `kept` for the gradient.
std::vector<at::Tensor> CudnnForward(const AttentionHeads& heads, const AttentionPlanSize& size,
                                     const at::Tensor& offsets, const AttentionInputs& inputs);
AttentionInputs CudnnBackward(const AttentionHeads& heads, const AttentionPlanSize& size,
                              const at::Tensor& offsets, const AttentionInputs& inputs,
                              const std::vector<at::Tensor>& kept, const at::Tensor& gradient);

}  // namespace pace

#endif  // PACE_MODEL_CUDA_TRAIN_CUDNN_ATTENTION_H_
