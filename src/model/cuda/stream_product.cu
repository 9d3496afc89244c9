// Products of few rows with a large matrix, at the speed of reading the matrix.
//
// A block computes sixteen outputs of all rows; its warps share the inner
// dimension. Weights go straight from memory into the fragments of the tensor
// cores: which inner index a fragment's slot stands for is free as long as both
// operands agree, so each lane takes eight in a row, 16 bytes. Weights do not
// depend on earlier kernels, so the first loads are under way while the
// predecessor still runs.
#include "model/cuda/launch.cuh"
#include "model/cuda/product_kernels.h"

namespace pace::cuda {
namespace {

constexpr int kChunk = 32;    // inner indices of one pair of fragments
constexpr int kOutputs = 16;  // rows of a fragment
constexpr int kColumns = 8;
constexpr int kMaxWarps = 16;

__device__ inline uint4 LoadOnce(const Half* from) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}

// kParts: 2 where gate and up are computed together. kUnroll: chunks at a time.
template <int kParts, int kFragments, int kUnroll>
struct Streamer {
  const StreamArguments& a;
  const Half* weight;
  int64_t output;  // the first
  int lane;
  int warp;
  int num_warps;
  float sums[kParts][kFragments][4] = {};
  uint4 weights[kUnroll][kParts][2];

  __device__ int64_t InnerAt(int64_t round, int u) const {
    return ((round * num_warps + warp) * kUnroll + u) * kChunk + lane % 4 * 8;
  }

  __device__ void LoadWeights(int64_t round) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t inner = InnerAt(round, u);
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int64_t row = output + lane / 4 + h * 8;
          const bool is_there = inner < a.num_inputs && row < a.num_outputs;
          weights[u][p][h] = make_uint4(0, 0, 0, 0);
          if (is_there) {
            weights[u][p][h] = LoadOnce(weight + (p * a.num_outputs + row) * a.num_inputs + inner);
          }
        }
      }
    }
  }

  // `columns`: this lane's row of x in each fragment, or null.
  __device__ void MultiplyRound(int64_t round, const Half* const (&columns)[kFragments]) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t inner = InnerAt(round, u);
#pragma unroll
      for (int f = 0; f < kFragments; ++f) {
        uint4 x = make_uint4(0, 0, 0, 0);
        if (columns[f] != nullptr && inner < a.num_inputs) {
          x = *reinterpret_cast<const uint4*>(columns[f] + inner);
        }
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
          const uint4 low = weights[u][p][0];
          const uint4 high = weights[u][p][1];
          Multiply(sums[p][f], low.x, high.x, low.y, high.y, x.x, x.y);
          Multiply(sums[p][f], low.z, high.z, low.w, high.w, x.z, x.w);
        }
      }
    }
  }
};

// Norms rows of x into shared memory; stride in halves.
__device__ void NormInto(const StreamArguments& a, Half* to, int64_t stride, float* scratch) {
  const float* const x = static_cast<const float*>(a.x);
  for (int64_t row = 0; row < a.num_rows; ++row) {
    float squares = 0;
    for (int64_t i = threadIdx.x; i < a.norm_width; i += blockDim.x) {
      const float value = x[row * a.x_stride + i];
      squares += value * value;
    }
    const float mean = BlockSum(squares, scratch) / static_cast<float>(a.norm_width);
    const float factor = rsqrtf(mean + a.epsilon);
    for (int64_t i = threadIdx.x; i < a.num_inputs; i += blockDim.x) {
      const float value =
          i < a.norm_width ? x[row * a.x_stride + i] * factor * a.norm_weight[i] : 0;
      to[row * stride + i] = FromFloat<Half>(value);
    }
  }
  __syncthreads();
}

__host__ __device__ constexpr int64_t NormStride(int64_t num_inputs) {
  return num_inputs + 32;
}

__device__ void StoreOutput(const StreamArguments& a, int64_t row, int64_t output, float first,
                            float second) {
  const int64_t at = row * a.out_stride + output;
  if (a.output == StreamOutput::kGate) {
    if (a.bias != nullptr) {
      first += a.bias[output];
      second += a.bias[a.num_outputs + output];
    }
    static_cast<Half*>(a.out)[at] = FromFloat<Half>(Silu(first) * second);
    return;
  }
  float* const out = static_cast<float*>(a.out) + at;
  if (a.output == StreamOutput::kStore) {
    *out = first;
  } else {
    *out += first + (a.bias == nullptr ? 0.0F : a.bias[output]);
  }
}

template <int kParts, int kFragments, int kUnroll, bool kGrouped>
__global__ void __launch_bounds__(kMaxWarps * 32) StreamKernel(StreamArguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr int kAll = kFragments * kColumns;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int num_warps = static_cast<int>(blockDim.x / kWarp);
  ReleaseSuccessor();
  ExpertGroup group;
  const Half* weight = static_cast<const Half*>(a.weight);
  if constexpr (kGrouped) {
    WaitForPredecessor();
    if (static_cast<int>(blockIdx.y) >= *a.num_groups) return;
    group = a.groups[blockIdx.y];
    weight += group.expert * a.expert_stride;
  }
  Streamer<kParts, kFragments, kUnroll> streamer{
      a, weight, static_cast<int64_t>(blockIdx.x) * kOutputs, lane, warp, num_warps};
  streamer.LoadWeights(0);
  if constexpr (!kGrouped) WaitForPredecessor();

  float* const partial = reinterpret_cast<float*>(shared);
  const Half* columns[kFragments];
  const Half* x = static_cast<const Half*>(a.x);
  int64_t stride = a.x_stride;
  if (a.norm_weight != nullptr) {
    float* const scratch = partial + num_warps * kParts * kOutputs * kAll;
    Half* const normed = reinterpret_cast<Half*>(scratch + kWarp);
    stride = NormStride(a.num_inputs);
    NormInto(a, normed, stride, scratch);
    x = normed;
  }
#pragma unroll
  for (int f = 0; f < kFragments; ++f) {
    const int column = f * kColumns + lane / 4;
    if constexpr (kGrouped) {
      const int64_t row = column < group.num_slots ? group.slots[column] / a.slots_per_row : 0;
      columns[f] = column < group.num_slots ? x + row * stride : nullptr;
    } else {
      columns[f] = column < a.num_rows ? x + column * stride : nullptr;
    }
  }
  const int64_t round_inputs = static_cast<int64_t>(num_warps) * kUnroll * kChunk;
  for (int64_t round = 0; round * round_inputs < a.num_inputs; ++round) {
    if (round > 0) streamer.LoadWeights(round);
    streamer.MultiplyRound(round, columns);
  }

  // [warp][part][output][column]
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float* const to = partial + ((warp * kParts + p) * kOutputs + lane / 4 + h * 8) * kAll +
                          f * kColumns + lane % 4 * 2;
        *reinterpret_cast<float2*>(to) =
            make_float2(streamer.sums[p][f][h * 2], streamer.sums[p][f][h * 2 + 1]);
      }
    }
  }
  __syncthreads();
  const int num_columns = kGrouped ? group.num_slots : static_cast<int>(a.num_rows);
  for (int i = static_cast<int>(threadIdx.x); i < kOutputs * num_columns;
       i += static_cast<int>(blockDim.x)) {
    const int column = i / kOutputs;
    const int64_t output = streamer.output + i % kOutputs;
    if (output >= a.num_outputs) continue;
    float sums[2] = {0, 0};
    for (int w = 0; w < num_warps; ++w) {
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        sums[p] += partial[((w * kParts + p) * kOutputs + i % kOutputs) * kAll + column];
      }
    }
    StoreOutput(a, kGrouped ? group.slots[column] : column, output, sums[0], sums[1]);
  }
}

// Enough warps for all processors, without tiny shares of the inner dimension.
int WarpsFor(int64_t num_tiles, int64_t num_inputs) {
  int warps = num_tiles >= 264 ? 4 : 8;
  if (num_tiles < 264 && num_inputs > 6144) warps = kMaxWarps;
  while (warps > 1 && warps * 2 * kChunk > num_inputs) warps /= 2;
  return warps;
}

template <int kParts, int kFragments, int kUnroll, bool kGrouped>
void LaunchStream(const StreamArguments& a, cudaStream_t stream) {
  const int64_t tiles = (a.num_outputs + kOutputs - 1) / kOutputs;
  const int warps = WarpsFor(tiles * (kGrouped ? a.max_groups : 1), a.num_inputs);
  size_t bytes =
      sizeof(float) * static_cast<size_t>(warps * kParts * kOutputs * kFragments * kColumns);
  if (a.norm_weight != nullptr) {
    bytes += kWarp * sizeof(float) +
             sizeof(Half) * static_cast<size_t>(a.num_rows * NormStride(a.num_inputs));
  }
  const dim3 grid(static_cast<unsigned>(tiles),
                  kGrouped ? static_cast<unsigned>(a.max_groups) : 1U);
  const auto kernel = StreamKernel<kParts, kFragments, kUnroll, kGrouped>;
  if (bytes > 48 * 1024) {
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes));
  }
  Launch(kernel, grid, static_cast<unsigned>(warps) * kWarp, bytes, stream, a);
}

template <typename T>
__device__ float WarpProduct(const T* x, const T* weight, int64_t num_inputs) {
  float sum = 0;
  for (int64_t i = threadIdx.x % kWarp; i < num_inputs; i += kWarp) {
    sum += ToFloat(x[i]) * ToFloat(weight[i]);
  }
  return WarpSum(sum);
}

template <typename T>
__global__ void PlainExpertsKernel(StreamArguments a, const int32_t* experts) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int64_t slot = blockIdx.y;
  const int64_t output = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (output >= a.num_outputs) return;
  const T* const weight = static_cast<const T*>(a.weight) + experts[slot] * a.expert_stride;
  const T* const x = static_cast<const T*>(a.x) + slot / a.slots_per_row * a.x_stride;
  const float first = WarpProduct(x, weight + output * a.num_inputs, a.num_inputs);
  if (a.output == StreamOutput::kStore) {
    if (threadIdx.x % kWarp == 0) static_cast<float*>(a.out)[slot * a.out_stride + output] = first;
    return;
  }
  const float second =
      WarpProduct(x, weight + (a.num_outputs + output) * a.num_inputs, a.num_inputs);
  if (threadIdx.x % kWarp != 0) return;
  static_cast<T*>(a.out)[slot * a.out_stride + output] = FromFloat<T>(Silu(first) * second);
}

}  // namespace

void StreamProduct(const StreamArguments& a, cudaStream_t stream) {
  const bool is_gate = a.output == StreamOutput::kGate;
  if (a.groups != nullptr) {
    is_gate ? LaunchStream<2, 1, 4, true>(a, stream) : LaunchStream<1, 1, 4, true>(a, stream);
  } else if (a.num_rows <= kColumns) {
    is_gate ? LaunchStream<2, 1, 4, false>(a, stream) : LaunchStream<1, 1, 4, false>(a, stream);
  } else if (a.num_rows <= 2 * kColumns) {
    is_gate ? LaunchStream<2, 2, 2, false>(a, stream) : LaunchStream<1, 2, 4, false>(a, stream);
  } else {
    is_gate ? LaunchStream<2, 4, 2, false>(a, stream) : LaunchStream<1, 4, 4, false>(a, stream);
  }
}

void PlainExperts(const StreamArguments& a, const int32_t* experts, int64_t num_slots,
                  Element element, cudaStream_t stream) {
  constexpr unsigned kWarps = 4;
  const dim3 grid((static_cast<unsigned>(a.num_outputs) + kWarps - 1) / kWarps,
                  static_cast<unsigned>(num_slots));
  Launch(element == Element::kHalf ? PlainExpertsKernel<Half> : PlainExpertsKernel<float>, grid,
         kWarps * kWarp, 0, stream, a, experts);
}

}  // namespace pace::cuda
