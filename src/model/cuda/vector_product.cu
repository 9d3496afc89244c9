// Products of one or two rows: plain multiply-adds, since reading the matrix is
// all that takes time.
//
// A warp computes one output (or gate and up, that belong together) over the
// whole inner dimension, so it reads a row of the matrix, 512 bytes at a time,
// and then the next one. x lies in shared memory.
#include "model/cuda/stream_parts.cuh"

namespace pace::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kStep = 256;  // inner indices of one load of a warp
constexpr int kLoads = 8;   // of a lane at a time
// Blocks that a processor holds; units of work are shared out evenly among them.
constexpr int BlocksFor(bool is_gate) {
  return is_gate ? 4 : 5;
}

__device__ inline float2 Halves(uint32_t pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000U));
}

__device__ inline float Dot(const uint4& w, const uint4& x, float sum) {
  const uint32_t ws[4] = {w.x, w.y, w.z, w.w};
  const uint32_t xs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 a = Halves(ws[i]);
    const float2 b = Halves(xs[i]);
    sum = fmaf(a.x, b.x, sum);
    sum = fmaf(a.y, b.y, sum);
  }
  return sum;
}

// What a warp loads at a time.
template <int kParts>
struct Stage {
  static constexpr int kUnroll = kLoads / kParts;
  uint4 weights[kUnroll][kParts];
};

// Where a warp is in its list of units and stages.
template <int kUnroll>
struct Cursor {
  int64_t unit;
  int inner;  // of this lane

  __device__ void Next(int num_inputs, int64_t num_warps, int lane) {
    inner += kUnroll * kStep;
    if (inner - lane * 8 < num_inputs) return;
    inner = lane * 8;
    unit += num_warps;
  }
};

template <int kRows, bool kGate>
__global__ void __launch_bounds__(kWarps * 32, BlocksFor(kGate)) VectorKernel(StreamArguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr int kParts = kGate ? 2 : 1;
  constexpr int kUnroll = Stage<kParts>::kUnroll;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int num_inputs = static_cast<int>(a.num_inputs);
  const int64_t num_warps = static_cast<int64_t>(gridDim.x) * kWarps;
  const auto* const weight = static_cast<const Half*>(a.weight);
  const auto load = [&](Stage<kParts>& stage, const Cursor<kUnroll>& at) {
    const bool is_unit = at.unit < a.num_outputs;
    const Half* const row = weight + (is_unit ? at.unit : 0) * num_inputs;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int inner = at.inner + u * kStep;
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        stage.weights[u][p] =
            LoadOnce(row + p * a.num_outputs * num_inputs + inner, is_unit && inner < num_inputs);
      }
    }
  };
  Cursor<kUnroll> next{.unit = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp,
                       .inner = lane * 8};
  Cursor<kUnroll> at = next;
  Stage<kParts> even;
  Stage<kParts> odd;
  load(even, next);
  next.Next(num_inputs, num_warps, lane);
  load(odd, next);
  WaitForPredecessor();

  float* const scratch = reinterpret_cast<float*>(shared);
  auto* const products = reinterpret_cast<float4*>(scratch + kWarp);
  Half* const xs =
      reinterpret_cast<Half*>(products + (a.norm_weight == nullptr ? 0 : num_inputs / 4));
  if (a.norm_weight != nullptr) {
    NormInto(a, xs, num_inputs, products, scratch);
  } else {
    for (int row = 0; row < kRows; ++row) {
      const auto* const from =
          reinterpret_cast<const uint4*>(static_cast<const Half*>(a.x) + row * a.x_stride);
      for (int i = static_cast<int>(threadIdx.x); i < num_inputs / 8; i += kWarps * 32) {
        reinterpret_cast<uint4*>(xs + row * num_inputs)[i] = from[i];
      }
    }
    __syncthreads();
  }

  float sums[kRows][kParts] = {};
  // Adds a stage; where its unit ends, stores that.
  const auto add = [&](const Stage<kParts>& stage) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int inner = at.inner + u * kStep;
      const int place = inner < num_inputs ? inner : 0;
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const uint4 x = *reinterpret_cast<const uint4*>(xs + row * num_inputs + place);
#pragma unroll
        for (int p = 0; p < kParts; ++p) sums[row][p] = Dot(stage.weights[u][p], x, sums[row][p]);
      }
    }
    const int64_t unit = at.unit;
    at.Next(num_inputs, num_warps, lane);
    if (at.unit == unit) return;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const float first = WarpSum(sums[row][0]);
      const float second = WarpSum(sums[row][kParts - 1]);
      if (lane == 0) StoreOutput(a, row, unit, first, second);
#pragma unroll
      for (int p = 0; p < kParts; ++p) sums[row][p] = 0;
    }
  };
  while (at.unit < a.num_outputs) {
    add(even);
    next.Next(num_inputs, num_warps, lane);
    load(even, next);
    if (at.unit >= a.num_outputs) break;
    add(odd);
    next.Next(num_inputs, num_warps, lane);
    load(odd, next);
  }
  ReleaseSuccessor();
}

int NumProcessors() {
  static const int count = [] {
    int found = 1;
    (void)cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, 0);
    return found;
  }();
  return count;
}

}  // namespace

void VectorProduct(const StreamArguments& a, cudaStream_t stream) {
  const bool is_gate = a.output == StreamOutput::kGate;
  const int64_t resident = static_cast<int64_t>(BlocksFor(is_gate)) * kWarps * NumProcessors();
  const int64_t outputs_each = (a.num_outputs + resident - 1) / resident;
  const int64_t warps = (a.num_outputs + outputs_each - 1) / outputs_each;
  size_t bytes =
      sizeof(float) * kWarp + sizeof(Half) * static_cast<size_t>(a.num_rows * a.num_inputs);
  if (a.norm_weight != nullptr) bytes += sizeof(float) * static_cast<size_t>(a.num_inputs);
  const auto kernel = a.num_rows == 1 ? (is_gate ? VectorKernel<1, true> : VectorKernel<1, false>)
                                      : (is_gate ? VectorKernel<2, true> : VectorKernel<2, false>);
  if (bytes > 48 * 1024) {
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes));
  }
  Launch(kernel, static_cast<unsigned>((warps + kWarps - 1) / kWarps), kWarps * kWarp, bytes,
         stream, a);
}

}  // namespace pace::cuda
