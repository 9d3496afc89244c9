// Attention, slow and obvious: what the fast kernels are compared with, and what
// float32 uses.
#include "model/cuda/cache_layout.h"
#include "model/cuda/decode/attention_kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

// One warp for a row and head: a key at a time, dimensions over the lanes.
template <typename T>
__global__ void PlainAttentionKernel(AttentionArguments a) {
  constexpr int kLaneDims = kMaxHeadDim / 32;
  ReleaseSuccessor();
  WaitForPredecessor();
  const int lane = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y);
  const int dim = a.cache.head_dim;
  const int padded = PaddedHeadDim(dim);
  const int kv_head = head / (a.num_heads / a.cache.num_kv_heads);
  const T* const query = static_cast<const T*>(a.queries) + (row * a.num_heads + head) * padded;
  const float scale = rsqrtf(static_cast<float>(dim));
  float largest = -INFINITY;
  float sum = 0;
  float out[kLaneDims] = {};
  for (int at = 0; at <= a.rows.positions[row]; ++at) {
    const int64_t block = a.rows.blocks[a.rows.tables[row] + at / kPageTokens];
    const T* const keys = static_cast<const T*>(a.cache.at) +
                          (block * a.cache.num_kv_heads + kv_head) * 2 * PageElements(padded);
    const T* const values = keys + PageElements(padded);
    const int token = at % kPageTokens;
    float product = 0;
    for (int d = lane; d < dim; d += 32) {
      product += ToFloat(query[d]) * ToFloat(keys[KeyIndex(token, d)]);
    }
    const float score = WarpSum(product) * scale;
    const float top = fmaxf(largest, score);
    const float rescale = expf(largest - top);
    const float weight = expf(score - top);
    sum = sum * rescale + weight;
    for (int i = 0; i < kLaneDims; ++i) {
      const int d = lane + i * 32;
      if (d < dim) out[i] = out[i] * rescale + weight * ToFloat(values[ValueIndex(token, d)]);
    }
    largest = top;
  }
  T* const to = static_cast<T*>(a.out) + row * a.out_stride + head * dim;
  for (int i = 0; i < kLaneDims; ++i) {
    if (lane + i * 32 < dim) to[lane + i * 32] = FromFloat<T>(out[i] / sum);
  }
}

}  // namespace

void PlainAttention(const AttentionArguments& a, int64_t num_rows, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(num_rows), static_cast<unsigned>(a.num_heads));
  const bool is_half = a.cache.element == Element::kHalf;
  Launch(is_half ? PlainAttentionKernel<Half> : PlainAttentionKernel<float>, grid, kWarp, 0, stream,
         a);
}

}  // namespace pace::cuda
