// Kernels of training: rows of activations with their gradients, and rows of
// logits. Each is one pass over memory where a composition of tensor operations
// would take many.
//
// Rows are contiguous, float32 or bf16; norms, sums and tables are float32. Sums
// over rows come as one partial result per block, [num_partials, width], for
// AddPartials to add up: so they do not depend on which block ends first.
// training_functions.h is what uses them, and its tests compare each with the
// composition that it replaces. Thread-safety: as CUDA streams.
#ifndef PACE_MODEL_CUDA_TRAIN_TRAINING_KERNELS_H_
#define PACE_MODEL_CUDA_TRAIN_TRAINING_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "model/cuda/kernels.h"

namespace pace::cuda {

// Widths of normed rows must be multiples of the first and at most the second.
inline constexpr int64_t kRowVector = 8;
inline constexpr int64_t kMaxNormWidth = 8192;

// How many partial results a gradient over num_rows rows has.
int64_t NumPartials(int64_t num_rows);
// Their sum, [width], always in the same order.
void AddPartials(const float* partials, int64_t count, int64_t width, float* sums,
                 cudaStream_t stream);

// y = weight * x / sqrt(mean(x^2) + epsilon)
struct TrainingNorm {
  const void* x = nullptr;
  const float* weight = nullptr;
  float epsilon = 0;
  int64_t num_rows = 0;
  int64_t width = 0;
  Element element = Element::kFloat;
};
void NormForward(const TrainingNorm& norm, void* y, cudaStream_t stream);
// dx is `addend` (or null) plus the gradient through the norm.
void NormBackward(const TrainingNorm& norm, const void* dy, const void* addend, void* dx,
                  float* d_weight_partials, cudaStream_t stream);

// y = silu(gate) * up; a row of gate_up holds all gates, then all ups. REQUIRES:
// width a multiple of kRowVector
struct TrainingGate {
  const void* gate_up = nullptr;
  int64_t num_rows = 0;
  int64_t width = 0;
  Element element = Element::kFloat;
};
void GateForward(const TrainingGate& gate, void* y, cudaStream_t stream);
void GateBackward(const TrainingGate& gate, const void* dy, void* d_gate_up, cudaStream_t stream);

// Query and key heads: normed where there are norms, then turned by their
// positions. Rows of qkv hold query, key and value heads, all bf16. REQUIRES:
// head_dim a multiple of 4, at most kMaxHeadDim
struct TrainingHeads {
  const void* qkv = nullptr;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  const float* query_norm = nullptr;  // or null
  const float* key_norm = nullptr;    // or null
  float epsilon = 0;
  const float* cosines = nullptr;  // [rows, head_dim / 2]
  const float* sines = nullptr;
  int64_t num_rows = 0;
};
// To query heads and key heads, each contiguous.
void TurnForward(const TrainingHeads& heads, void* queries, void* keys, cudaStream_t stream);
// From gradients of turned queries, turned keys and values to those of qkv and of
// the norms: partials [num_partials, 2, head_dim], the query's before the key's,
// or null where there are no norms.
struct HeadGradients {
  const void* queries = nullptr;
  const void* keys = nullptr;
  const void* values = nullptr;
};
void TurnBackward(const TrainingHeads& heads, const HeadGradients& gradients, void* d_qkv,
                  float* norm_partials, cudaStream_t stream);

// Rows of float32 logits, `stride` apart.
struct LogitRows {
  const float* logits = nullptr;
  int64_t stride = 0;
  int64_t num_rows = 0;
  int64_t vocabulary = 0;
  const int64_t* targets = nullptr;
  float scale = 1;  // 1 / temperature
};
// log softmax(scale logits)[target], the logarithm of its denominator, the entropy.
void ScoreLogitRows(const LogitRows& rows, float* logprobs, float* log_sums, float* entropies,
                    cudaStream_t stream);
// d logits in `element`, rows contiguous; of_entropy may be null.
struct LogitRowGradients {
  const float* log_sums = nullptr;
  const float* entropies = nullptr;
  const float* of_logprob = nullptr;
  const float* of_entropy = nullptr;
};
void LogitRowsBackward(const LogitRows& rows, const LogitRowGradients& gradients, void* d_logits,
                       Element element, cudaStream_t stream);

// One AdamW update of one tensor, in place. With learning rate r: decay = r * weight decay,
// step_size = r / (1 - beta1^n), root_correction = sqrt(1 - beta2^n) at the n-th update.
struct AdamWUpdate {
  float* parameter = nullptr;
  const float* gradient = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  int64_t count = 0;
  float gradient_factor = 1;
  float beta1 = 0;
  float beta2 = 0;
  float epsilon = 0;
  float decay = 0;
  float step_size = 0;
  float root_correction = 1;
};
void ApplyAdamW(const AdamWUpdate& update, cudaStream_t stream);

// Sums of squares, one for each block, to add up in any fixed order.
int64_t NumSquarePartials(int64_t count);
void SumSquares(const float* x, int64_t count, double* partials, cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_TRAIN_TRAINING_KERNELS_H_
