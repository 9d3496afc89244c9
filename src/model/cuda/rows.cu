// Kernels that work on rows: embedding, norms, rotary, gates, biases.
#include "model/cuda/cache_layout.h"
#include "model/cuda/kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

constexpr unsigned kRowThreads = 256;
constexpr unsigned kHeadWarps = 4;
// Pairs of a head that a lane turns.
constexpr int kPairsPerLane = kMaxHeadDim / 2 / 32;

template <typename T>
__global__ void EmbedKernel(EmbedArguments a) {
  const int64_t row = blockIdx.x;
  const T* const from = static_cast<const T*>(a.embedding) + a.tokens[row] * a.stride;
  ReleaseSuccessor();
  for (int64_t i = threadIdx.x; i < a.width; i += blockDim.x) {
    a.out[row * a.stride + i] = ToFloat(from[i]);
  }
}

template <typename T>
__global__ void NormKernel(NormArguments a) {
  __shared__ float scratch[kWarp];
  ReleaseSuccessor();
  WaitForPredecessor();
  const int64_t row = blockIdx.x;
  const float* const x = a.x + (a.rows == nullptr ? row : a.rows[row]) * a.stride;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < a.width; i += blockDim.x) squares += x[i] * x[i];
  const float mean = BlockSum(squares, scratch) / static_cast<float>(a.width);
  const float factor = rsqrtf(mean + a.epsilon);
  T* const out = static_cast<T*>(a.out) + row * a.stride;
  for (int64_t i = threadIdx.x; i < a.width; i += blockDim.x) {
    out[i] = FromFloat<T>(x[i] * factor * a.weight[i]);
  }
}

// A head of a row, in one warp: pairs (i, i + half) for i = lane, lane + 32, ...
struct HeadPairs {
  float low[kPairsPerLane];
  float high[kPairsPerLane];

  __device__ void Load(const float* x, const float* bias, int half, int lane) {
#pragma unroll
    for (int p = 0; p < kPairsPerLane; ++p) {
      const int i = lane + p * 32;
      low[p] = i < half ? x[i] + (bias == nullptr ? 0.0F : bias[i]) : 0.0F;
      high[p] = i < half ? x[i + half] + (bias == nullptr ? 0.0F : bias[i + half]) : 0.0F;
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
  __device__ void Turn(const float* frequencies, int position, int half, int lane) {
#pragma unroll
    for (int p = 0; p < kPairsPerLane; ++p) {
      const int i = lane + p * 32;
      if (i >= half) continue;
      float sine;
      float cosine;
      sincosf(static_cast<float>(position) * frequencies[i], &sine, &cosine);
      const float turned = low[p] * cosine - high[p] * sine;
      high[p] = high[p] * cosine + low[p] * sine;
      low[p] = turned;
    }
  }
};

template <typename T>
__global__ void RotateKernel(RotateArguments a) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int head = static_cast<int>(blockIdx.y * kHeadWarps + threadIdx.x / kWarp);
  const int num_kv_heads = a.cache.num_kv_heads;
  if (head >= a.num_heads + 2 * num_kv_heads) return;
  const int64_t row = blockIdx.x;
  const int dim = a.cache.head_dim;
  const int half = dim / 2;
  const int padded = PaddedHeadDim(dim);
  const int position = a.rows.positions[row];
  HeadPairs pairs;
  pairs.Load(a.qkv + row * a.qkv_stride + head * dim,
             a.bias == nullptr ? nullptr : a.bias + head * dim, half, lane);
  const bool is_query = head < a.num_heads;
  const bool is_value = head >= a.num_heads + num_kv_heads;
  if (!is_value) {
    const float* const norm = is_query ? a.q_norm : a.k_norm;
    if (norm != nullptr) pairs.ApplyNorm(norm, a.epsilon, half, lane);
    pairs.Turn(a.frequencies, position, half, lane);
  }
  T* to = static_cast<T*>(a.queries) + (row * a.num_heads + head) * padded;
  const int token = position % kPageTokens;
  if (!is_query) {
    const int64_t block = a.rows.blocks[a.rows.tables[row] + position / kPageTokens];
    const int kv_head = (head - a.num_heads) % num_kv_heads;
    to = static_cast<T*>(a.cache.at) +
         ((block * num_kv_heads + kv_head) * 2 + (is_value ? 1 : 0)) * PageElements(padded);
  }
  const auto index = [&](int d) {
    if (is_query) return d;
    return is_value ? ValueIndex(token, d) : KeyIndex(token, d);
  };
#pragma unroll
  for (int p = 0; p < kPairsPerLane; ++p) {
    const int i = lane + p * 32;
    if (i >= half) continue;
    to[index(i)] = FromFloat<T>(pairs.low[p]);
    to[index(i + half)] = FromFloat<T>(pairs.high[p]);
  }
}

template <typename T>
__global__ void GateKernel(GateArguments a) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int64_t row = blockIdx.x;
  const T* const gate = static_cast<const T*>(a.gate_up) + row * 2 * a.width;
  T* const out = static_cast<T*>(a.out) + row * a.out_stride;
  for (int64_t i = blockIdx.y * blockDim.x + threadIdx.x; i < a.width;
       i += gridDim.y * blockDim.x) {
    float g = ToFloat(gate[i]);
    float u = ToFloat(gate[a.width + i]);
    if (a.bias != nullptr) {
      g += a.bias[i];
      u += a.bias[a.width + i];
    }
    out[i] = FromFloat<T>(Silu(g) * u);
  }
}

__global__ void AddBiasKernel(float* x, const float* bias, int64_t width, int64_t stride) {
  ReleaseSuccessor();
  WaitForPredecessor();
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) x[blockIdx.x * stride + i] += bias[i];
}

unsigned Count(int64_t n) {
  return static_cast<unsigned>(n);
}

}  // namespace

void Embed(const EmbedArguments& a, cudaStream_t stream) {
  // Not by Launch: the first of a pass waits for all that came before.
  if (a.element == Element::kHalf) {
    EmbedKernel<Half><<<Count(a.num_rows), kRowThreads, 0, stream>>>(a);
  } else {
    EmbedKernel<float><<<Count(a.num_rows), kRowThreads, 0, stream>>>(a);
  }
}

void Norm(const NormArguments& a, cudaStream_t stream) {
  const bool is_half = a.element == Element::kHalf;
  Launch(is_half ? NormKernel<Half> : NormKernel<float>, Count(a.num_rows), kRowThreads, 0, stream,
         a);
}

void Rotate(const RotateArguments& a, cudaStream_t stream) {
  const int heads = a.num_heads + 2 * a.cache.num_kv_heads;
  const dim3 grid(Count(a.num_rows), (static_cast<unsigned>(heads) + kHeadWarps - 1) / kHeadWarps);
  const bool is_half = a.cache.element == Element::kHalf;
  Launch(is_half ? RotateKernel<Half> : RotateKernel<float>, grid, kHeadWarps * kWarp, 0, stream,
         a);
}

void Gate(const GateArguments& a, cudaStream_t stream) {
  const dim3 grid(Count(a.num_rows), Count((a.width + 4 * kRowThreads - 1) / (4 * kRowThreads)));
  const bool is_half = a.element == Element::kHalf;
  Launch(is_half ? GateKernel<Half> : GateKernel<float>, grid, kRowThreads, 0, stream, a);
}

void AddBias(float* x, const float* bias, int64_t num_rows, int64_t width, int64_t stride,
             cudaStream_t stream) {
  Launch(AddBiasKernel, Count(num_rows), kRowThreads, 0, stream, x, bias, width, stride);
}

}  // namespace pace::cuda
