// The CUDA kernels of inference, as functions that launch them.
//
// Pointers are device memory unless stated otherwise. Every launch is asynchronous on its stream
// and may be captured into a graph: sizes come from the arguments; everything that changes between
// passes is read from device memory. Rows are strided; the padding of a row is always zero.
// Residuals, sums and statistics are float32; `Half` stands for bfloat16.
//
// Consecutive kernels use programmatic dependent launch: the next one may start while the last one
// ends, and waits for it before it reads its output. A pass begins with Embed, which waits for
// everything before it.
// Thread-safety: launches on different streams may run concurrently.
#ifndef PACE_MODEL_CUDA_KERNELS_H_
#define PACE_MODEL_CUDA_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace pace::cuda {

// The element type of activations and weights.
enum class Element { kFloat, kHalf };

constexpr int64_t BytesOf(Element element) {
  return element == Element::kFloat ? 4 : 2;
}

// The positions of a pass's rows in their sequences. `tables[row]` is the first
// entry of the row's sequence in `blocks`.
struct RowTables {
  const int32_t* tokens = nullptr;
  const int32_t* positions = nullptr;
  const int32_t* tables = nullptr;
  const int32_t* blocks = nullptr;
};

// The cache of one layer.
struct LayerCache {
  void* at = nullptr;
  Element element = Element::kFloat;
  int num_kv_heads = 0;
  int head_dim = 0;
};

// out[row] = embedding[tokens[row]]
struct EmbedArguments {
  const int32_t* tokens = nullptr;
  const void* embedding = nullptr;
  Element element = Element::kFloat;
  int64_t num_rows = 0;
  int64_t width = 0;
  int64_t stride = 0;
  float* out = nullptr;
};
void Embed(const EmbedArguments& arguments, cudaStream_t stream);

// out[i] = x[rows[i]] / rms(x[rows[i]]) * weight; without `rows`, of row i. With
// `slots`, row i of `out` is the row's slot in the cache.
struct NormArguments {
  const float* x = nullptr;
  const int32_t* rows = nullptr;
  RowTables slots{};
  const float* weight = nullptr;
  float epsilon = 0;
  int64_t num_rows = 0;
  int64_t width = 0;
  int64_t stride = 0;
  void* out = nullptr;
  Element element = Element::kFloat;
};
void Norm(const NormArguments& arguments, cudaStream_t stream);

// out[i] = x[rows[i]], whole strides. Waits for everything before it.
struct GatherArguments {
  const void* x = nullptr;
  const int32_t* rows = nullptr;
  int64_t num_rows = 0;
  int64_t stride = 0;
  void* out = nullptr;
  Element element = Element::kFloat;
};
void Gather(const GatherArguments& arguments, cudaStream_t stream);

// Adds the bias to q, k and v; norms heads of q and k where there are norms;
// turns them by their positions; writes k and v into the cache and q to
// `queries`, padded heads one after the other.
struct RotateArguments {
  const float* qkv = nullptr;
  int64_t qkv_stride = 0;
  const float* bias = nullptr;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  float epsilon = 0;
  const float* frequencies = nullptr;  // head_dim / 2
  int num_heads = 0;
  int64_t num_rows = 0;
  RowTables rows{};
  LayerCache cache{};
  void* queries = nullptr;
};
void Rotate(const RotateArguments& arguments, cudaStream_t stream);

// out = silu(gate + bias) * (up + bias); a row of gate_up holds both.
struct GateArguments {
  const void* gate_up = nullptr;
  const float* bias = nullptr;
  Element element = Element::kFloat;
  int64_t num_rows = 0;
  int64_t width = 0;
  void* out = nullptr;
  int64_t out_stride = 0;
};
void Gate(const GateArguments& arguments, cudaStream_t stream);

// x[row] += bias
void AddBias(float* x, const float* bias, int64_t num_rows, int64_t width, int64_t stride,
             cudaStream_t stream);

// Copies blocks of all layers. `pairs`: from, to.
void CopyCacheBlocks(void* cache, int64_t layer_bytes, int64_t block_bytes, int64_t num_layers,
                     const int32_t* pairs, int64_t num_pairs, cudaStream_t stream);

// Rows of a checkpoint into strided rows.
enum class Source { kF32, kF16, kBF16 };
void ConvertRows(const void* from, Source source, int64_t num_rows, int64_t width, void* to,
                 int64_t stride, Element element, cudaStream_t stream);
// The same rounded to scales times eight-bit floats (model/quantization.h), in one form or in both:
// `values` with width bytes for a row and `scales` with a float; `rounded`, strided rows of
// elements.
struct Float8Rows {
  uint8_t* values = nullptr;
  float* scales = nullptr;
  void* rounded = nullptr;
  int64_t stride = 0;
  Element element = Element::kHalf;
};
void RoundRows(const void* from, Source source, int64_t num_rows, int64_t width,
               const Float8Rows& to, cudaStream_t stream);
// Random values with this mean and deviation: a function of seed and position.
void FillRandom(void* to, Element element, int64_t num_rows, int64_t width, int64_t stride,
                uint64_t seed, float mean, float deviation, cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_KERNELS_H_
