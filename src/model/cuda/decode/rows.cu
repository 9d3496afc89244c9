// Kernels that work on rows: embedding, norms, rotary, gates, biases.
#include "model/cuda/head_pairs.cuh"
#include "model/cuda/kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

constexpr unsigned kRowThreads = 256;
constexpr unsigned kHeadWarps = 4;
// Groups of four elements of a row that a thread keeps between the two passes over it.
constexpr int kKeptQuads = 4;

__device__ float SquaresOf(float4 v) {
  return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}
__device__ void StoreQuad(float* to, float x, float y, float z, float w) {
  *reinterpret_cast<float4*>(to) = make_float4(x, y, z, w);
}
__device__ void StoreQuad(Half* to, float x, float y, float z, float w) {
  *reinterpret_cast<uint2*>(to) = make_uint2(PackHalves(x, y), PackHalves(z, w));
}
__device__ float2 UnpackHalves(uint32_t pair) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
}

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
  const int64_t slot = a.slots.positions == nullptr ? row : SlotOf(a.slots, row);
  T* const out = static_cast<T*>(a.out) + slot * a.stride;
  const bool is_even = a.width % 4 == 0;
  const int quads = is_even ? static_cast<int>(a.width / 4) : 0;
  const auto* const x4 = reinterpret_cast<const float4*>(x);
  float4 kept[kKeptQuads];  // of this thread
  float squares = 0;
#pragma unroll
  for (int k = 0; k < kKeptQuads; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * static_cast<int>(kRowThreads);
    if (i >= quads) continue;
    kept[k] = x4[i];
    squares += SquaresOf(kept[k]);
  }
  for (int64_t i = 4 * kKeptQuads * kRowThreads + threadIdx.x; is_even && i < a.width;
       i += blockDim.x) {
    squares += x[i] * x[i];
  }
  for (int64_t i = threadIdx.x; !is_even && i < a.width; i += blockDim.x) squares += x[i] * x[i];
  const float mean = BlockSum(squares, scratch) / static_cast<float>(a.width);
  const float factor = rsqrtf(mean + a.epsilon);
#pragma unroll
  for (int k = 0; k < kKeptQuads; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * static_cast<int>(kRowThreads);
    if (i >= quads) continue;
    const float4 w = reinterpret_cast<const float4*>(a.weight)[i];
    const float4 v = kept[k];
    StoreQuad(out + 4 * i, v.x * factor * w.x, v.y * factor * w.y, v.z * factor * w.z,
              v.w * factor * w.w);
  }
  const int64_t rest = is_even ? 4 * kKeptQuads * kRowThreads : 0;
  for (int64_t i = rest + threadIdx.x; i < a.width; i += blockDim.x) {
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

// Heads of a row that a warp turns, of many rows: angles are computed once.
constexpr int kWarpHeads = 4;
constexpr int64_t kManyRows = 512;

template <typename T>
__global__ void RotateKernel(RotateArguments a) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int64_t row = blockIdx.x;
  const int half = a.cache.head_dim / 2;
  const int padded = PaddedHeadDim(a.cache.head_dim);
  const PairAngles angles(a.frequencies, a.rows.positions[row], half, lane);
  for (int head = static_cast<int>(blockIdx.y * kHeadWarps + threadIdx.x / kWarp);
       head < a.num_heads + 2 * a.cache.num_kv_heads;
       head += static_cast<int>(gridDim.y * kHeadWarps)) {
    HeadPairs pairs;
    pairs.LoadTurned(a, row, head, lane, angles);
    if (head >= a.num_heads) {
      pairs.StoreInCache<T>(a, row, head, lane);
      continue;
    }
    T* const to = static_cast<T*>(a.queries) + (row * a.num_heads + head) * padded;
    pairs.Store(to, half, lane, [](int d) { return d; });
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

// The same of halves without biases, eight at a time.
__global__ void WideGateKernel(GateArguments a) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int64_t row = blockIdx.x;
  const auto* const gate =
      reinterpret_cast<const uint4*>(static_cast<const Half*>(a.gate_up) + row * 2 * a.width);
  const int wide = static_cast<int>(a.width / 8);
  auto* const out = reinterpret_cast<uint4*>(static_cast<Half*>(a.out) + row * a.out_stride);
  for (int i = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x); i < wide;
       i += static_cast<int>(gridDim.y * blockDim.x)) {
    const uint4 g = gate[i];
    const uint4 u = gate[wide + i];
    const uint32_t gates[4] = {g.x, g.y, g.z, g.w};
    const uint32_t ups[4] = {u.x, u.y, u.z, u.w};
    uint32_t both[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 first = UnpackHalves(gates[k]);
      const float2 second = UnpackHalves(ups[k]);
      both[k] = PackHalves(Silu(first.x) * second.x, Silu(first.y) * second.y);
    }
    out[i] = make_uint4(both[0], both[1], both[2], both[3]);
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
  const unsigned each = kHeadWarps * (a.num_rows < kManyRows ? 1 : kWarpHeads);
  const dim3 grid(Count(a.num_rows), (static_cast<unsigned>(heads) + each - 1) / each);
  const bool is_half = a.cache.element == Element::kHalf;
  Launch(is_half ? RotateKernel<Half> : RotateKernel<float>, grid, kHeadWarps * kWarp, 0, stream,
         a);
}

void Gate(const GateArguments& a, cudaStream_t stream) {
  const dim3 grid(Count(a.num_rows), Count((a.width + 4 * kRowThreads - 1) / (4 * kRowThreads)));
  const bool is_half = a.element == Element::kHalf;
  if (is_half && a.bias == nullptr && a.width % 8 == 0 && a.out_stride % 8 == 0) {
    const dim3 wide(Count(a.num_rows), Count((a.width + 8 * kRowThreads - 1) / (8 * kRowThreads)));
    Launch(WideGateKernel, wide, kRowThreads, 0, stream, a);
    return;
  }
  Launch(is_half ? GateKernel<Half> : GateKernel<float>, grid, kRowThreads, 0, stream, a);
}

void AddBias(float* x, const float* bias, int64_t num_rows, int64_t width, int64_t stride,
             cudaStream_t stream) {
  Launch(AddBiasKernel, Count(num_rows), kRowThreads, 0, stream, x, bias, width, stride);
}

}  // namespace pace::cuda
