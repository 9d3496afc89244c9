// CudaAttention: causal attention over packed sequences in bf16 on a GPU, and its gradient.
//
// Sequences lie one after the other, and a token attends to earlier tokens of its own sequence.
// cuDNN computes it where the build has its frontend and cuDNN supports the shape; otherwise
// LibTorch's FlashAttention 2, which takes 1.3 to 1.9 times as long on an H200. cuDNN is called
// through its own frontend, because LibTorch's call for packed sequences builds a new plan every
// time and returned wrong gradients (docs/gpu.md).
//
// Work is queued on LibTorch's current stream. Thread-safety: const methods, from any thread.
#ifndef PACE_MODEL_CUDA_TRAIN_CUDA_ATTENTION_H_
#define PACE_MODEL_CUDA_TRAIN_CUDA_ATTENTION_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "model/cuda/train/cudnn_attention.h"

namespace pace {

// Of a batch.
AttentionPlanSize PlanSizeOf(const std::vector<int64_t>& lengths);

class CudaAttention {
 public:
  CudaAttention(const AttentionHeads& heads, const std::vector<int64_t>& lengths,
                at::Device device);

  // The output, contiguous, then what else the gradient needs.
  std::vector<at::Tensor> Forward(const AttentionInputs& inputs) const;
  // Contiguous gradients of the inputs. `kept` is what Forward returned.
  AttentionInputs Backward(const AttentionInputs& inputs, const std::vector<at::Tensor>& kept,
                           const at::Tensor& gradient) const;

 private:
  const AttentionHeads heads_;
  int64_t longest_ = 0;
  AttentionPlanSize size_;
  at::Tensor begins_;  // of the sequences, and where the last ends: int32
  // For cuDNN; undefined: FlashAttention 2.
  at::Tensor offsets_;
};

}  // namespace pace

#endif  // PACE_MODEL_CUDA_TRAIN_CUDA_ATTENTION_H_
