// Products of one or two rows: plain multiply-adds, since reading the matrix is
// all that takes time.
//
// A warp computes two outputs (of gate and up: the two that belong together)
// over the whole inner dimension, so it reads two rows of the matrix, 512 bytes
// at a time, and then the next two. x lies in shared memory. Weights do not
// depend on earlier kernels: the first are under way before the predecessor ends.
#include "model/cuda/decode/row_stream.cuh"

namespace pace::cuda {
namespace {

// Into the place of the products; weights may be read before the predecessor ends.
__device__ void LoadNormWeights(const StreamArguments& a, float4* products) {
  const auto* const weight = reinterpret_cast<const float4*>(a.norm_weight);
  const auto num_vectors = static_cast<int>(a.norm_width / 4);
  for (int i = static_cast<int>(threadIdx.x); i < num_vectors; i += static_cast<int>(blockDim.x)) {
    products[i] = weight[i];
  }
}

// Norms rows of x into `to`, in shared memory. `products` holds a row's elements times their
// weights between the two passes over them, and at first what LoadNormWeights put there.
__device__ void NormInto(const StreamArguments& a, Half* to, float4* products, float* scratch) {
  const auto* const weight = reinterpret_cast<const float4*>(a.norm_weight);
  const auto num_vectors = static_cast<int>(a.norm_width / 4);
  for (int64_t row = 0; row < a.num_rows; ++row) {
    const auto* const x =
        reinterpret_cast<const float4*>(static_cast<const float*>(a.x) + row * a.x_stride);
    float squares = 0;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < num_vectors;
         i += static_cast<int>(blockDim.x)) {
      const float4 v = x[i];
      const float4 w = row == 0 ? products[i] : weight[i];
      squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
      products[i] = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
    }
    const float mean = BlockSum(squares, scratch) / static_cast<float>(a.norm_width);
    const float factor = rsqrtf(mean + a.epsilon);
    for (int i = static_cast<int>(threadIdx.x); 4 * i < a.num_inputs;
         i += static_cast<int>(blockDim.x)) {
      const float4 v = i < num_vectors ? products[i] : make_float4(0, 0, 0, 0);
      *reinterpret_cast<uint2*>(to + row * a.num_inputs + 4 * i) = make_uint2(
          PackHalves(v.x * factor, v.y * factor), PackHalves(v.z * factor, v.w * factor));
    }
  }
  __syncthreads();
}

// x into shared memory: normed, or as it is.
__device__ void ShareRows(const StreamArguments& a, Half* to, float4* products, float* scratch) {
  if (a.norm_weight != nullptr) return NormInto(a, to, products, scratch);
  for (int64_t row = 0; row < a.num_rows; ++row) {
    const auto* const from =
        reinterpret_cast<const uint4*>(static_cast<const Half*>(a.x) + row * a.x_stride);
    for (int64_t i = threadIdx.x; i < a.num_inputs / 8; i += kStreamWarps * 32) {
      reinterpret_cast<uint4*>(to + row * a.num_inputs)[i] = from[i];
    }
  }
  __syncthreads();
}

using Cursor = RowCursor<int64_t>;

template <int kRows, bool kGate>
__global__ void __launch_bounds__(kStreamWarps * 32, kStreamBlocks)
    VectorKernel(StreamArguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int num_inputs = static_cast<int>(a.num_inputs);
  const int64_t num_warps = static_cast<int64_t>(gridDim.x) * kStreamWarps;
  const int64_t num_units = kGate ? a.num_outputs : (a.num_outputs + 1) / 2;
  const auto* const weight = static_cast<const Half*>(a.weight);
  const auto row_of = [&](int64_t unit, int which) {
    const int64_t row =
        kGate ? which * a.num_outputs + unit : min(2 * unit + which, a.num_outputs - 1);
    return weight + row * num_inputs;
  };
  const auto load = [&](RowStage<>& stage, const Cursor& from) {
    const bool is_unit = from.unit < num_units;
    const int64_t unit = is_unit ? from.unit : 0;
    const Half* const rows[2] = {row_of(unit, 0), row_of(unit, 1)};
#pragma unroll
    for (int u = 0; u < kStreamUnroll; ++u) {
      const int inner = from.inner + u * kStreamStep<false>;
#pragma unroll
      for (int w = 0; w < 2; ++w) {
        stage.weights[u][w] = LoadOnce(rows[w] + inner, is_unit && inner < num_inputs);
      }
    }
  };
  Cursor next{.unit = static_cast<int64_t>(blockIdx.x) * kStreamWarps + threadIdx.x / kWarp,
              .inner = lane * 8};
  Cursor at = next;
  RowStage<> even;
  RowStage<> odd;
  const auto advance = [&](Cursor& cursor) { cursor.Next(num_inputs, num_warps, lane); };
  StartStages(even, odd, next, advance, load);

  const bool has_norm = a.norm_weight != nullptr;
  float* const scratch = reinterpret_cast<float*>(shared);
  auto* const products = reinterpret_cast<float4*>(scratch + kWarp);
  Half* const xs = reinterpret_cast<Half*>(products + (has_norm ? num_inputs / 4 : 0));
  if (has_norm) LoadNormWeights(a, products);
  WaitForPredecessor();
  ShareRows(a, xs, products, scratch);

  float sums[kRows][2] = {};
  // Adds a stage; where its unit ends, stores that.
  const auto add = [&](const RowStage<>& stage) {
#pragma unroll
    for (int u = 0; u < kStreamUnroll; ++u) {
      const int inner = at.inner + u * kStreamStep<false>;
      const int index = inner < num_inputs ? inner : 0;
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const uint4 x = *reinterpret_cast<const uint4*>(xs + row * num_inputs + index);
#pragma unroll
        for (int w = 0; w < 2; ++w) sums[row][w] = Dot(stage.weights[u][w], x, sums[row][w]);
      }
    }
    const int64_t unit = at.unit;
    at.Next(num_inputs, num_warps, lane);
    if (at.unit == unit) return;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const float first = WarpSum(sums[row][0]);
      const float second = WarpSum(sums[row][1]);
      sums[row][0] = sums[row][1] = 0;
      if (kGate) {
        if (lane == 0) StoreOutput(a, row, unit, first, second);
      } else if (lane < 2 && 2 * unit + lane < a.num_outputs) {
        StoreOutput(a, row, 2 * unit + lane, lane == 0 ? first : second, 0);
      }
    }
  };
  AddStages(even, odd, next, at, num_units, advance, load, add);
  ReleaseSuccessor();
}

}  // namespace

void VectorProduct(const StreamArguments& a, cudaStream_t stream) {
  const bool is_gate = a.output == StreamOutput::kGate;
  const int64_t units = is_gate ? a.num_outputs : (a.num_outputs + 1) / 2;
  size_t bytes =
      sizeof(float) * kWarp + sizeof(Half) * static_cast<size_t>(a.num_rows * a.num_inputs);
  if (a.norm_weight != nullptr) bytes += sizeof(float) * static_cast<size_t>(a.num_inputs);
  const auto kernel = a.num_rows == 1 ? (is_gate ? VectorKernel<1, true> : VectorKernel<1, false>)
                                      : (is_gate ? VectorKernel<2, true> : VectorKernel<2, false>);
  if (bytes > 48 * 1024) {
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes));
  }
  Launch(kernel, StreamBlocksFor(units), kStreamWarps * kWarp, bytes, stream, a);
}

}  // namespace pace::cuda
