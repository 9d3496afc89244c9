// Products of few rows with a large matrix, at the speed of reading the matrix.
//
// A block computes sixteen outputs of all rows; its warps share the inner
// dimension. Weights go straight from memory into the fragments of the tensor
// cores: which inner index a fragment's slot stands for is free as long as both
// operands agree, so each lane takes eight in a row, 16 bytes. Weights do not
// depend on earlier kernels, so the first loads are under way while the
// predecessor still runs.
#include "model/cuda/decode/float8.cuh"
#include "model/cuda/decode/product_kernels.h"
#include "model/cuda/decode/stream_parts.cuh"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

// Inner indices that four lanes load at once: of one pair of fragments, or of two.
template <bool kFloat8>
constexpr int kChunk = 4 * Weights16<kFloat8>::kCount;
constexpr int kOutputs = 16;  // rows of a fragment
constexpr int kColumns = 8;
static_assert(kMaxStreamRows == kColumns);

// Warps of a block, and blocks of a processor: what leaves the registers that
// two rounds of loads take, with room for all blocks at once.
constexpr int MaxWarps(int parts) {
  return parts == 2 ? 4 : 8;
}
constexpr int LeastBlocks(int parts) {
  return parts == 2 ? 5 : 2;
}

// kParts: 2 where gate and up are computed together. kUnroll: chunks at a time.
template <int kParts, int kUnroll, bool kFloat8>
struct Streamer {
  using Bytes = Weights16<kFloat8>;
  static constexpr int kStep = kUnroll * kChunk<kFloat8>;
  // What a warp multiplies at a time.
  struct Round {
    uint4 weights[kUnroll][kParts][2];
    uint4 x[kUnroll][Bytes::kEights];
  };

  const StreamArguments& a;
  const char* rows[kParts][2];   // this lane's rows of the weights
  const Half* column = nullptr;  // and of x
  int num_inputs;
  int first;         // inner index of this lane in round 0
  int round_inputs;  // of all warps
  float sums[kParts][4] = {};

  __device__ Streamer(const StreamArguments& arguments, const char* weight, int64_t output,
                      int lane, int warp, int num_warps)
      : a(arguments),
        num_inputs(static_cast<int>(arguments.num_inputs)),
        first(warp * kStep + lane % 4 * Bytes::kCount),
        round_inputs(num_warps * kStep) {
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // What lies beyond the last output is computed and not stored.
        const int64_t row = min(output + lane / 4 + h * 8, a.num_outputs - 1);
        rows[p][h] = weight + (p * a.num_outputs + row) * a.num_inputs * Bytes::kBytes;
      }
    }
  }

  __device__ bool Has(int round) const { return round * round_inputs < num_inputs; }
  __device__ int InnerAt(int round, int u) const {
    return round * round_inputs + first + u * kChunk<kFloat8>;
  }

  // Beyond the end weights are 0, and x is some element of its row.
  __device__ void LoadWeights(Round& r, int round) const {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int inner = InnerAt(round, u);
      const bool is_there = inner < num_inputs;
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          r.weights[u][p][h] = LoadOnce(rows[p][h] + inner * Bytes::kBytes, is_there);
        }
      }
    }
  }
  __device__ void LoadX(Round& r, int round) const {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int inner = InnerAt(round, u);
      const int at = inner < num_inputs ? inner : 0;
#pragma unroll
      for (int e = 0; e < Bytes::kEights; ++e) {
        r.x[u][e] = *reinterpret_cast<const uint4*>(column + at + 8 * e);
      }
    }
  }
  __device__ void MultiplyRound(const Round& r) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int e = 0; e < Bytes::kEights; ++e) {
        const uint4 x = r.x[u][e];
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
          const uint4 low = Bytes::Eight(r.weights[u][p][0], e);
          const uint4 high = Bytes::Eight(r.weights[u][p][1], e);
          Multiply(sums[p], low.x, high.x, low.y, high.y, x.x, x.y);
          Multiply(sums[p], low.z, high.z, low.w, high.w, x.z, x.w);
        }
      }
    }
  }

  // All rounds; the loads of one are under way while another is multiplied.
  // REQUIRES: the weights of round 0 are in `even`
  __device__ void Run(Round& even) {
    Round odd;
    LoadX(even, 0);
    for (int round = 0;; round += 2) {
      if (Has(round + 1)) {
        LoadWeights(odd, round + 1);
        LoadX(odd, round + 1);
      }
      MultiplyRound(even);
      if (!Has(round + 1)) return;
      if (Has(round + 2)) {
        LoadWeights(even, round + 2);
        LoadX(even, round + 2);
      }
      MultiplyRound(odd);
      if (!Has(round + 2)) return;
    }
  }
};

template <int kParts, int kUnroll, bool kGrouped, bool kFloat8>
__global__ void __launch_bounds__(MaxWarps(kParts) * 32, LeastBlocks(kParts))
    StreamKernel(StreamArguments a) {
  using Streamed = Streamer<kParts, kUnroll, kFloat8>;
  extern __shared__ __align__(16) unsigned char shared[];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int num_warps = static_cast<int>(blockDim.x / kWarp);
  ExpertGroup group;
  const char* weight = static_cast<const char*>(a.weight);
  const float* scales = a.scales;
  if constexpr (kGrouped) {
    WaitForPredecessor();
    if (static_cast<int>(blockIdx.y) >= *a.num_groups) return;
    group = a.groups[blockIdx.y];
    weight += group.expert * a.expert_stride * Streamed::Bytes::kBytes;
    if (kFloat8) scales = ScalesOf(scales, group.expert, a.expert_stride);
  }
  const int64_t first_output = static_cast<int64_t>(blockIdx.x) * kOutputs;
  Streamed streamer(a, weight, first_output, lane, warp, num_warps);
  typename Streamed::Round round;
  streamer.LoadWeights(round, 0);
  if constexpr (!kGrouped) WaitForPredecessor();

  float* const partial = reinterpret_cast<float*>(shared);
  const Half* x = static_cast<const Half*>(a.x);
  // A column that is not there repeats the first one, and is not stored.
  const int column = lane / 4;
  if constexpr (kGrouped) {
    const int slot = group.slots[column < group.num_slots ? column : 0];
    streamer.column = x + slot / a.slots_per_row * a.x_stride;
  } else {
    streamer.column = x + (column < a.num_rows ? column : 0) * a.x_stride;
  }
  streamer.Run(round);
  ReleaseSuccessor();

  // [warp][part][output][column]
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float* const to =
          partial + ((warp * kParts + p) * kOutputs + lane / 4 + h * 8) * kColumns + lane % 4 * 2;
      *reinterpret_cast<float2*>(to) =
          make_float2(streamer.sums[p][h * 2], streamer.sums[p][h * 2 + 1]);
    }
  }
  __syncthreads();
  const int num_columns = kGrouped ? group.num_slots : static_cast<int>(a.num_rows);
  for (int i = static_cast<int>(threadIdx.x); i < kOutputs * num_columns;
       i += static_cast<int>(blockDim.x)) {
    const int column = i / kOutputs;
    const int64_t output = first_output + i % kOutputs;
    if (output >= a.num_outputs) continue;
    float sums[2] = {0, 0};
    for (int w = 0; w < num_warps; ++w) {
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        sums[p] += partial[((w * kParts + p) * kOutputs + i % kOutputs) * kColumns + column];
      }
    }
    if constexpr (kFloat8) {
#pragma unroll
      for (int p = 0; p < kParts; ++p) sums[p] *= scales[p * a.num_outputs + output];
    }
    StoreOutput(a, kGrouped ? group.slots[column] : column, output, sums[0], sums[1]);
  }
}

// Enough warps for all processors, without tiny shares of the inner dimension.
int WarpsFor(int64_t num_tiles, int64_t num_inputs, int parts, int chunk) {
  int warps = num_tiles >= 264 ? 4 : MaxWarps(parts);
  while (warps > 1 && warps * 2 * chunk > num_inputs) warps /= 2;
  return warps;
}

template <int kParts, int kUnroll, bool kGrouped, bool kFloat8 = false>
void LaunchStream(const StreamArguments& a, cudaStream_t stream) {
  const int64_t tiles = (a.num_outputs + kOutputs - 1) / kOutputs;
  const int warps =
      WarpsFor(tiles * (kGrouped ? a.max_groups : 1), a.num_inputs, kParts, kChunk<kFloat8>);
  const size_t bytes = sizeof(float) * static_cast<size_t>(warps * kParts * kOutputs * kColumns);
  const dim3 grid(static_cast<unsigned>(tiles),
                  kGrouped ? static_cast<unsigned>(a.max_groups) : 1U);
  const auto kernel = StreamKernel<kParts, kUnroll, kGrouped, kFloat8>;
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
  if (a.scales != nullptr && a.groups != nullptr) {
    is_gate ? LaunchStream<2, 1, true, true>(a, stream) : LaunchStream<1, 2, true, true>(a, stream);
  } else if (a.scales != nullptr) {
    is_gate ? LaunchStream<2, 1, false, true>(a, stream)
            : LaunchStream<1, 2, false, true>(a, stream);
  } else if (a.groups == nullptr && a.num_rows <= kMaxVectorRows) {
    VectorProduct(a, stream);
  } else if (a.groups != nullptr) {
    is_gate ? LaunchStream<2, 2, true>(a, stream) : LaunchStream<1, 4, true>(a, stream);
  } else {
    is_gate ? LaunchStream<2, 2, false>(a, stream) : LaunchStream<1, 4, false>(a, stream);
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
