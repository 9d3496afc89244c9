// Query and key heads of training: norm, rotary, and back.
#include "model/cuda/cache_layout.h"
#include "model/cuda/train/row_vector.cuh"

namespace pace::cuda {
namespace {

constexpr unsigned kWarps = 8;
// Neighbouring pairs that a lane holds at once, and how often at most.
constexpr int kNeighbours = 2;
constexpr int kRounds = kMaxHeadDim / 2 / (kNeighbours * static_cast<int>(kWarp));

// One head in one warp: elements i and i + half for i = 2 lane, 2 lane + 1, and
// again 64 further.
struct TrainingHead {
  float low[kRounds][kNeighbours];
  float high[kRounds][kNeighbours];

  template <typename Body>
  __device__ static void ForRounds(int half, int lane, Body body) {
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      const int i = kNeighbours * (lane + r * static_cast<int>(kWarp));
      if (i < half) body(r, i);
    }
  }
  __device__ static void LoadPair(const Half* from, float (&pair)[kNeighbours]) {
    const float2 both = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(from));
    pair[0] = both.x;
    pair[1] = both.y;
  }
  __device__ static void StorePair(const float (&pair)[kNeighbours], Half* to) {
    *reinterpret_cast<uint32_t*>(to) = PackHalves(pair[0], pair[1]);
  }

  __device__ void Clear() {
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
#pragma unroll
      for (int n = 0; n < kNeighbours; ++n) low[r][n] = high[r][n] = 0;
    }
  }
  __device__ void Load(const Half* from, int half, int lane) {
    Clear();
    ForRounds(half, lane, [&](int r, int i) {
      LoadPair(from + i, low[r]);
      LoadPair(from + half + i, high[r]);
    });
  }
  __device__ void Store(Half* to, int half, int lane) const {
    ForRounds(half, lane, [&](int r, int i) {
      StorePair(low[r], to + i);
      StorePair(high[r], to + half + i);
    });
  }
  // By the angles of a row; `way` = -1 turns back.
  __device__ void Turn(const float* cosines, const float* sines, float way, int half, int lane) {
    ForRounds(half, lane, [&](int r, int i) {
#pragma unroll
      for (int n = 0; n < kNeighbours; ++n) {
        const float cosine = cosines[i + n];
        const float sine = way * sines[i + n];
        const float turned = low[r][n] * cosine - high[r][n] * sine;
        high[r][n] = high[r][n] * cosine + low[r][n] * sine;
        low[r][n] = turned;
      }
    });
  }
  // The sum over all elements of both.
  __device__ float Dot(const TrainingHead& other) const {
    float sum = 0;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
#pragma unroll
      for (int n = 0; n < kNeighbours; ++n) {
        sum += low[r][n] * other.low[r][n] + high[r][n] * other.high[r][n];
      }
    }
    return WarpSum(sum);
  }
};

__device__ float FactorOf(const TrainingHead& x, int dim, float epsilon) {
  return rsqrtf(x.Dot(x) / static_cast<float>(dim) + epsilon);
}

__device__ void ApplyNorm(TrainingHead& x, const float* weight, float factor, int half, int lane) {
  TrainingHead::ForRounds(half, lane, [&](int r, int i) {
#pragma unroll
    for (int n = 0; n < kNeighbours; ++n) {
      x.low[r][n] *= factor * weight[i + n];
      x.high[r][n] *= factor * weight[half + i + n];
    }
  });
}

// The gradient of ApplyNorm: of x in `g`'s place, of the weight added to `d_weight`.
__device__ void NormGradient(const TrainingHead& x, const float* weight, float epsilon, int dim,
                             int lane, TrainingHead& g, TrainingHead& d_weight) {
  const int half = dim / 2;
  const float factor = FactorOf(x, dim, epsilon);
  TrainingHead::ForRounds(half, lane, [&](int r, int i) {
#pragma unroll
    for (int n = 0; n < kNeighbours; ++n) {
      d_weight.low[r][n] += g.low[r][n] * x.low[r][n] * factor;
      d_weight.high[r][n] += g.high[r][n] * x.high[r][n] * factor;
      g.low[r][n] *= weight[i + n];
      g.high[r][n] *= weight[half + i + n];
    }
  });
  const float pull = g.Dot(x) / static_cast<float>(dim) * factor * factor * factor;
  TrainingHead::ForRounds(half, lane, [&](int r, int /*i*/) {
#pragma unroll
    for (int n = 0; n < kNeighbours; ++n) {
      g.low[r][n] = g.low[r][n] * factor - x.low[r][n] * pull;
      g.high[r][n] = g.high[r][n] * factor - x.high[r][n] * pull;
    }
  });
}

__global__ void TurnForwardKernel(TrainingHeads a, Half* queries, Half* keys) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int64_t row = blockIdx.x;
  const int half = a.head_dim / 2;
  const int all = a.num_heads + 2 * a.num_kv_heads;
  const Half* const from = static_cast<const Half*>(a.qkv) + row * all * a.head_dim;
  for (int head = static_cast<int>(threadIdx.x / kWarp); head < a.num_heads + a.num_kv_heads;
       head += static_cast<int>(kWarps)) {
    const bool is_query = head < a.num_heads;
    TrainingHead x;
    x.Load(from + head * a.head_dim, half, lane);
    const float* const norm = is_query ? a.query_norm : a.key_norm;
    if (norm != nullptr) {
      ApplyNorm(x, norm, FactorOf(x, a.head_dim, a.epsilon), half, lane);
    }
    x.Turn(a.cosines + row * half, a.sines + row * half, 1.0F, half, lane);
    Half* const to = is_query ? queries + (row * a.num_heads + head) * a.head_dim
                              : keys + (row * a.num_kv_heads + head - a.num_heads) * a.head_dim;
    x.Store(to, half, lane);
  }
}

// Adds up what the warps of a block hold, in their order.
__device__ void AddWarps(const TrainingHead& own, int half, int lane, float* shared, float* out) {
  const auto warp = threadIdx.x / kWarp;
  const int dim = 2 * half;
  float* const mine = shared + static_cast<int>(warp) * dim;
  TrainingHead::ForRounds(half, lane, [&](int r, int i) {
#pragma unroll
    for (int n = 0; n < kNeighbours; ++n) {
      mine[i + n] = own.low[r][n];
      mine[half + i + n] = own.high[r][n];
    }
  });
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < dim; i += static_cast<int>(blockDim.x)) {
    float sum = 0;
    for (unsigned w = 0; w < kWarps; ++w) sum += shared[static_cast<int>(w) * dim + i];
    out[i] = sum;
  }
  __syncthreads();
}

__global__ void TurnBackwardKernel(TrainingHeads a, HeadGradients gradients, Half* d_qkv,
                                   float* partials) {
  __shared__ float shared[kWarps * kMaxHeadDim];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int dim = a.head_dim;
  const int half = dim / 2;
  const int turned = a.num_heads + a.num_kv_heads;
  const int all = turned + a.num_kv_heads;
  TrainingHead d_query_norm;
  TrainingHead d_key_norm;
  d_query_norm.Clear();
  d_key_norm.Clear();
  for (int64_t row = blockIdx.x; row < a.num_rows; row += gridDim.x) {
    for (int head = static_cast<int>(threadIdx.x / kWarp); head < all;
         head += static_cast<int>(kWarps)) {
      const int64_t offset = (row * all + head) * dim;
      TrainingHead g;
      if (head >= turned) {
        const int64_t value = (row * a.num_kv_heads + head - turned) * dim;
        g.Load(static_cast<const Half*>(gradients.values) + value, half, lane);
        g.Store(d_qkv + offset, half, lane);
        continue;
      }
      const bool is_query = head < a.num_heads;
      const Half* const from =
          is_query ? static_cast<const Half*>(gradients.queries) + (row * a.num_heads + head) * dim
                   : static_cast<const Half*>(gradients.keys) +
                         (row * a.num_kv_heads + head - a.num_heads) * dim;
      g.Load(from, half, lane);
      g.Turn(a.cosines + row * half, a.sines + row * half, -1.0F, half, lane);
      const float* const norm = is_query ? a.query_norm : a.key_norm;
      if (norm != nullptr) {
        TrainingHead x;
        x.Load(static_cast<const Half*>(a.qkv) + offset, half, lane);
        NormGradient(x, norm, a.epsilon, dim, lane, g, is_query ? d_query_norm : d_key_norm);
      }
      g.Store(d_qkv + offset, half, lane);
    }
  }
  if (partials == nullptr) return;
  float* const out = partials + blockIdx.x * 2 * dim;
  AddWarps(d_query_norm, half, lane, shared, out);
  AddWarps(d_key_norm, half, lane, shared, out + dim);
}

}  // namespace

void TurnForward(const TrainingHeads& heads, void* queries, void* keys, cudaStream_t stream) {
  TurnForwardKernel<<<static_cast<unsigned>(heads.num_rows), kWarps * kWarp, 0, stream>>>(
      heads, static_cast<Half*>(queries), static_cast<Half*>(keys));
}

void TurnBackward(const TrainingHeads& heads, const HeadGradients& gradients, void* d_qkv,
                  float* norm_partials, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(NumPartials(heads.num_rows));
  TurnBackwardKernel<<<blocks, kWarps * kWarp, 0, stream>>>(
      heads, gradients, static_cast<Half*>(d_qkv), norm_partials);
}

}  // namespace pace::cuda
