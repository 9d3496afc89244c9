// The differentiable pieces of a network that have kernels of ours on a GPU, and
// what training needs to know of the GPU.
//
// row_functions.h, attention_function.h and train/logit_rows.h send tensors on a
// GPU here; in a build without CUDA every Has... is false and the rest is never
// called. Tensors are float32 or bf16 and on the GPU; work is queued on LibTorch's
// current stream. Thread-safety: as LibTorch's operations.
#ifndef PACE_MODEL_CUDA_TRAIN_TRAINING_FUNCTIONS_H_
#define PACE_MODEL_CUDA_TRAIN_TRAINING_FUNCTIONS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/cuda/train/cuda_attention.h"
#include "model/cuda/train/training_memory.h"
#include "model/model_config.h"

namespace pace {

// Whether RMS norms along the last dimension of x are here, and the gate of rows
// that hold gates and ups.
bool HasCudaNorm(const at::Tensor& x);
bool HasCudaGate(const at::Tensor& gate_up);
// Fill y, dx, d_gate_up; the norm's gradient returns the weight's and adds `addend` (or undefined)
// to dx. Tensors are contiguous, the weight float32.
void CudaNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon, const at::Tensor& y);
at::Tensor CudaNormGradient(const at::Tensor& g, const at::Tensor& x, const at::Tensor& weight,
                            double epsilon, const at::Tensor& addend, const at::Tensor& dx);
void CudaGate(const at::Tensor& gate_up, const at::Tensor& y);
void CudaGateGradient(const at::Tensor& g, const at::Tensor& gate_up, const at::Tensor& d_gate_up);

// What a function computed, for its second run on the same inputs: filled where it is empty, else
// taken instead of computing. Null: nothing is kept.
using KeptResult = std::vector<at::Tensor>;

// Whether products with float32 weights and attention in bf16 are here, for
// activations of this dtype.
bool HasCudaProducts(const at::Tensor& x);
// x times the matrices, one below the other, transposed; plus the biases (all or
// none) and `residual` (or undefined). Weights and biases are float32 and are
// rounded to bf16 as they are used; their gradients are summed and kept in
// float32.
struct CudaProduct {
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> biases = {};
  at::Tensor residual = {};
  KeptResult* kept = nullptr;
};
at::Tensor CudaLinear(const at::Tensor& x, const CudaProduct& product);

// Causal attention over packed sequences.
bool HasCudaAttention(const ModelConfig& config, at::ScalarType dtype, at::Device device);
struct CudaSequences : torch::CustomClassHolder {
  // cos and sin [tokens, 1, head_dim / 2], float32
  CudaSequences(const ModelConfig& config, const std::vector<int64_t>& lengths,
                const at::Tensor& cos, const at::Tensor& sin);
  const int num_heads;
  const int num_kv_heads;
  const int head_dim;
  const double norm_epsilon;
  const at::Tensor cosines;
  const at::Tensor sines;
  const CudaAttention attention;
};
// Norms are float32, or undefined.
at::Tensor CudaAttend(const at::Tensor& qkv, const at::Tensor& query_norm,
                      const at::Tensor& key_norm,
                      const c10::intrusive_ptr<CudaSequences>& sequences,
                      KeptResult* kept = nullptr);

// train/logit_rows.h: float32 logits on a GPU. `dtype` is float32 or bf16.
bool HasCudaLogits(const at::Tensor& logits);
void CudaScoreLogits(const at::Tensor& logits, const at::Tensor& targets, double temperature,
                     const at::Tensor& logprobs, const at::Tensor& log_sums,
                     const at::Tensor& entropies);
at::Tensor CudaLogitGradients(const at::Tensor& logits, const at::Tensor& targets,
                              double temperature, const at::Tensor& log_sums,
                              const at::Tensor& entropies, const at::Tensor& of_logprob,
                              const at::Tensor& of_entropy, at::ScalarType dtype);

// train/adamw.h: contiguous float32 tensors on a GPU.
bool HasCudaAdamW(const at::Tensor& parameter);
struct CudaAdamW {
  double learning_rate = 0;
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  int64_t num_updates = 0;     // this one included
  double gradient_factor = 1;  // that gradients are multiplied by
};
void CudaAdamWStep(const CudaAdamW& update, const at::Tensor& parameter, const at::Tensor& gradient,
                   const at::Tensor& first, const at::Tensor& second);
// The sum of squares of all tensors; waits for it once.
double CudaSumOfSquares(const std::vector<at::Tensor>& tensors);

// Waits for what this thread has queued.
void FinishCudaWork();

// The device's own time between two points of LibTorch's current stream, whatever the host did
// meanwhile. Thread-safety: none.
// REQUIRES: a GPU
class CudaStopwatch {
 public:
  CudaStopwatch();
  ~CudaStopwatch();

  void Start();
  // Waits for what was queued since; seconds.
  double Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_MODEL_CUDA_TRAIN_TRAINING_FUNCTIONS_H_
