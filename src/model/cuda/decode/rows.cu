// Kernels that work on rows: embedding, norms, rotary, gates, biases.
#include "model/cuda/head_pairs.cuh"
#include "model/cuda/kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

constexpr unsigned kRowThreads = 256;
constexpr unsigned kHeadWarps = 4;

template <typename T>
__global__ void EmbedKernel(EmbedArguments a) {
  const int64_t row = blockIdx.x;
  const T* const from = static_cast<const T*>(a.embedding) + a.tokens[row] * a.stride;
  ReleaseSuccessor();
  for (int64_t i = threadIdx.x; i < a.width; i += blockDim.x) {
    a.out[row * a.stride + i] = ToFloat(from[i]);
  }
}

__device__ int64_t SlotOf(const RowTables& rows, int64_t row) {
  const int32_t position = rows.positions[row];
  const int64_t block = rows.blocks[rows.tables[row] + position / kPageTokens];
  return block * kPageTokens + position % kPageTokens;
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
  const int64_t slot = a.slots.positions == nullptr ? row : SlotOf(a.slots, row);
  T* const out = static_cast<T*>(a.out) + slot * a.stride;
  for (int64_t i = threadIdx.x; i < a.width; i += blockDim.x) {
    out[i] = FromFloat<T>(x[i] * factor * a.weight[i]);
  }
}

__global__ void GatherKernel(const uint4* x, const int32_t* rows, int64_t vectors, uint4* out) {
  ReleaseSuccessor();
  const uint4* const from = x + rows[blockIdx.x] * vectors;
  for (int64_t i = threadIdx.x; i < vectors; i += blockDim.x) {
    out[blockIdx.x * vectors + i] = from[i];
  }
}

template <typename T>
__global__ void RotateKernel(RotateArguments a) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int head = static_cast<int>(blockIdx.y * kHeadWarps + threadIdx.x / kWarp);
  if (head >= a.num_heads + 2 * a.cache.num_kv_heads) return;
  const int64_t row = blockIdx.x;
  HeadPairs pairs;
  pairs.LoadTurned(a, row, head, lane);
  if (head >= a.num_heads) {
    pairs.StoreInCache<T>(a, row, head, lane);
    return;
  }
  const int padded = PaddedHeadDim(a.cache.head_dim);
  T* const to = static_cast<T*>(a.queries) + (row * a.num_heads + head) * padded;
  pairs.Store(to, a.cache.head_dim / 2, lane, [](int d) { return d; });
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

void Gather(const GatherArguments& a, cudaStream_t stream) {
  const int64_t vectors = a.stride * BytesOf(a.element) / static_cast<int64_t>(sizeof(uint4));
  GatherKernel<<<Count(a.num_rows), kRowThreads, 0, stream>>>(
      static_cast<const uint4*>(a.x), a.rows, vectors, static_cast<uint4*>(a.out));
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
