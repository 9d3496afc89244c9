// Attention over the paged cache with tensor cores.
//
// Scores and sums are computed transposed: S^T = K Q^T and O^T = V^T P^T, so
// that the sixteen rows of a fragment are the sixteen tokens of a page (or
// sixteen dimensions) and its eight columns are queries. A column is one query
// row with one of the heads that share a key/value head.
#ifndef PACE_MODEL_CUDA_DECODE_ATTENTION_FRAGMENTS_CUH_
#define PACE_MODEL_CUDA_DECODE_ATTENTION_FRAGMENTS_CUH_

#include "model/cuda/cache_layout.h"
#include "model/cuda/decode/attention_kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {

inline constexpr int kColumns = 8;  // of a fragment
inline constexpr float kLog2E = 1.44269504F;

struct AttentionShape {
  int64_t page_stride;  // elements from a block to the next
  int group;            // heads that share a key/value head
  float scale;          // of scores, in powers of two

  __device__ explicit AttentionShape(const AttentionArguments& a, int padded)
      : page_stride(static_cast<int64_t>(a.cache.num_kv_heads) * 2 * PageElements(padded)),
        group(a.num_heads / a.cache.num_kv_heads),
        scale(kLog2E * rsqrtf(static_cast<float>(a.cache.head_dim))) {}
};

// What one warp knows of its columns: lane 4g + t holds columns 2t and 2t + 1 of
// scores and sums, and column g of the queries.
template <int kDim, int kFragments>
struct WarpColumns {
  static constexpr int kSteps = kDim / 16;
  uint32_t query[kFragments][kSteps][2];
  float out[kFragments][kSteps][4];
  float largest[kFragments][2];
  float sum[kFragments][2];
  int last[kFragments][2];  // position that the column sees last; -1 = no column

  __device__ void Clear() {
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        largest[f][c] = -INFINITY;
        sum[f][c] = 0;
      }
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) out[f][s][i] = 0;
      }
    }
  }

  // `from`: a padded head, or null for a column that is not there.
  __device__ void LoadQuery(int f, const Half* from, int t) {
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      uint2 pair = make_uint2(0, 0);
      if (from != nullptr) pair = *reinterpret_cast<const uint2*>(from + s * 16 + t * 4);
      query[f][s][0] = pair.x;
      query[f][s][1] = pair.y;
    }
  }

  // One page of keys and values, whose first token has this position.
  __device__ void Attend(const Half* page, int first, float scale, int lane) {
    const uint4* const keys = reinterpret_cast<const uint4*>(page) + lane;
    const uint4* const values = keys + PageElements(kDim) / 8;
    uint4 key[kSteps];
    uint4 value[kSteps];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) key[s] = keys[s * 32];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) value[s] = values[s * 32];
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      float score[4] = {0, 0, 0, 0};
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        Multiply(score, key[s].x, key[s].z, key[s].y, key[s].w, query[f][s][0], query[f][s][1]);
      }
      const uint2 weights = Softmax(f, score, first, scale, lane);
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        Multiply(out[f][s], value[s].x, value[s].z, value[s].y, value[s].w, weights.x, weights.y);
      }
    }
  }

  // Scores into weights, as the right operand of the sums; rescales these.
  __device__ uint2 Softmax(int f, float (&score)[4], int first, float scale, int lane) {
    const int group = lane / 4;
    const int token = first + group / 2 * 4 + group % 2;
    float rescale[2];
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      if (token > last[f][c]) score[c] = -INFINITY;
      if (token + 2 > last[f][c]) score[c + 2] = -INFINITY;
      float top = fmaxf(score[c], score[c + 2]);
#pragma unroll
      for (unsigned step = 4; step < kWarp; step *= 2) {
        top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, step));
      }
      top = fmaxf(top * scale, largest[f][c]);
      const float safe = top == -INFINITY ? 0.0F : top;
      rescale[c] = exp2f(largest[f][c] - safe);
      largest[f][c] = top;
      score[c] = exp2f(score[c] * scale - safe);
      score[c + 2] = exp2f(score[c + 2] * scale - safe);
      sum[f][c] = sum[f][c] * rescale[c] + score[c] + score[c + 2];
    }
    if (__any_sync(kAllLanes, rescale[0] != 1.0F || rescale[1] != 1.0F)) {
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) out[f][s][i] *= rescale[i % 2];
      }
    }
    return make_uint2(Transpose(PackHalves(score[0], score[1])),
                      Transpose(PackHalves(score[2], score[3])));
  }

  // Adds the lanes' parts of the sums.
  __device__ void JoinSums() {
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
#pragma unroll
        for (unsigned step = 4; step < kWarp; step *= 2) {
          sum[f][c] += __shfl_xor_sync(kAllLanes, sum[f][c], step);
        }
      }
    }
  }
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_ATTENTION_FRAGMENTS_CUH_
