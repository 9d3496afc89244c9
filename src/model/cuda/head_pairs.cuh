// One head of one row in one warp: biases, norms, rotary, and into the cache.
#ifndef PACE_MODEL_CUDA_HEAD_PAIRS_CUH_
#define PACE_MODEL_CUDA_HEAD_PAIRS_CUH_

#include "model/cuda/cache_layout.h"
#include "model/cuda/kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {

// Pairs of a head that a lane turns.
inline constexpr int kPairsPerLane = kMaxHeadDim / 2 / 32;

// By how much the pairs of a lane are turned: the same for all heads of a row.
struct PairAngles {
  float sine[kPairsPerLane];
  float cosine[kPairsPerLane];

  __device__ PairAngles(const float* frequencies, int position, int half, int lane) {
#pragma unroll
    for (int p = 0; p < kPairsPerLane; ++p) {
      const int i = lane + p * 32;
      if (i >= half) continue;
      sincosf(static_cast<float>(position) * frequencies[i], &sine[p], &cosine[p]);
    }
  }
};

// A head of a row, in one warp: pairs (i, i + half) for i = lane, lane + 32, ...
struct HeadPairs {
  float low[kPairsPerLane];
  float high[kPairsPerLane];

  // Not through the L1 cache: other processors may have written x in this kernel.
  __device__ void Load(const float* x, const float* bias, int half, int lane) {
#pragma unroll
    for (int p = 0; p < kPairsPerLane; ++p) {
      const int i = lane + p * 32;
      low[p] = i < half ? __ldcg(x + i) + (bias == nullptr ? 0.0F : bias[i]) : 0.0F;
      high[p] = i < half ? __ldcg(x + i + half) + (bias == nullptr ? 0.0F : bias[i + half]) : 0.0F;
    }
  }
  __device__ void ApplyNorm(const float* weight, float epsilon, int half, int lane) {
    float squares = 0;
#pragma unroll
    for (int p = 0; p < kPairsPerLane; ++p) squares += low[p] * low[p] + high[p] * high[p];
    const float factor = rsqrtf(WarpSum(squares) / static_cast<float>(2 * half) + epsilon);
#pragma unroll
    for (int p = 0; p < kPairsPerLane; ++p) {
      const int i = lane + p * 32;
      if (i >= half) continue;
      low[p] *= factor * weight[i];
      high[p] *= factor * weight[i + half];
    }
  }
  __device__ void Turn(const PairAngles& angles, int half, int lane) {
#pragma unroll
    for (int p = 0; p < kPairsPerLane; ++p) {
      if (lane + p * 32 >= half) continue;
      const float sine = angles.sine[p];
      const float cosine = angles.cosine[p];
      const float turned = low[p] * cosine - high[p] * sine;
      high[p] = high[p] * cosine + low[p] * sine;
      low[p] = turned;
    }
  }

  // Head `head` of q, k and v, one after the other, as Rotate defines it.
  __device__ void LoadTurned(const RotateArguments& a, int64_t row, int head, int lane) {
    LoadTurned(a, row, head, lane,
               PairAngles(a.frequencies, a.rows.positions[row], a.cache.head_dim / 2, lane));
  }
  __device__ void LoadTurned(const RotateArguments& a, int64_t row, int head, int lane,
                             const PairAngles& angles) {
    const int dim = a.cache.head_dim;
    Load(a.qkv + row * a.qkv_stride + head * dim, a.bias == nullptr ? nullptr : a.bias + head * dim,
         dim / 2, lane);
    if (head >= a.num_heads + a.cache.num_kv_heads) return;
    const float* const norm = head < a.num_heads ? a.q_norm : a.k_norm;
    if (norm != nullptr) ApplyNorm(norm, a.epsilon, dim / 2, lane);
    Turn(angles, dim / 2, lane);
  }

  template <typename T, typename Index>
  __device__ void Store(T* to, int half, int lane, Index index) const {
#pragma unroll
    for (int p = 0; p < kPairsPerLane; ++p) {
      const int i = lane + p * 32;
      if (i >= half) continue;
      to[index(i)] = FromFloat<T>(low[p]);
      to[index(i + half)] = FromFloat<T>(high[p]);
    }
  }

  // REQUIRES: a head of k or v
  template <typename T>
  __device__ void StoreInCache(const RotateArguments& a, int64_t row, int head, int lane) const {
    const int position = a.rows.positions[row];
    const int64_t block = a.rows.blocks[a.rows.tables[row] + position / kPageTokens];
    const int num_kv_heads = a.cache.num_kv_heads;
    const bool is_value = head >= a.num_heads + num_kv_heads;
    const int64_t page =
        (block * num_kv_heads + (head - a.num_heads) % num_kv_heads) * 2 + (is_value ? 1 : 0);
    T* const to =
        static_cast<T*>(a.cache.at) + page * PageElements(PaddedHeadDim(a.cache.head_dim));
    const int token = position % kPageTokens;
    Store(to, a.cache.head_dim / 2, lane,
          [&](int d) { return is_value ? ValueIndex(token, d) : KeyIndex(token, d); });
  }
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_HEAD_PAIRS_CUH_
