// How a kernel for one or two rows streams the rows of a matrix through its warps.
//
// Reading the matrix is all that takes time, so the products are plain multiply-adds. A warp works
// on one unit at a time, which reads two rows of the matrix, in stages of kStreamUnroll loads of
// each row. Two stages are always under way. Each kernel says what a unit is, loads a stage of it
// and adds a stage to its sums.
//
// Thread-safety: a warp's variables are its own.
#ifndef PACE_MODEL_CUDA_DECODE_ROW_STREAM_CUH_
#define PACE_MODEL_CUDA_DECODE_ROW_STREAM_CUH_

#include "model/cuda/decode/float8.cuh"
#include "model/cuda/decode/stream_parts.cuh"

namespace pace::cuda {

inline constexpr int kStreamWarps = 4;
// Inner indices of one load of a warp.
template <bool kFloat8>
inline constexpr int kStreamStep = 32 * Weights16<kFloat8>::kCount;
inline constexpr int kStreamUnroll = 4;  // loads of a row at a time
// Blocks that a processor holds; units are shared out evenly among them.
inline constexpr int kStreamBlocks = 4;

__device__ inline float2 Unpack(uint32_t pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000U));
}

// `sum` plus the products of eight weights and eight inputs.
__device__ inline float Dot(const uint4& w, const uint4& x, float sum) {
  const uint32_t ws[4] = {w.x, w.y, w.z, w.w};
  const uint32_t xs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 a = Unpack(ws[i]);
    const float2 b = Unpack(xs[i]);
    sum = fmaf(a.x, b.x, sum);
    sum = fmaf(a.y, b.y, sum);
  }
  return sum;
}

// The same for sixteen bytes of weights and as many inputs, in shared memory.
template <bool kFloat8>
__device__ inline float Dot(const uint4& weights, const Half* x, float sum) {
#pragma unroll
  for (int e = 0; e < Weights16<kFloat8>::kEights; ++e) {
    sum =
        Dot(Weights16<kFloat8>::Eight(weights, e), *reinterpret_cast<const uint4*>(x + 8 * e), sum);
  }
  return sum;
}

// The part of two rows that a warp loads at a time; in eight bits, with their scales.
template <bool kFloat8 = false>
struct RowStage {
  uint4 weights[kStreamUnroll][2];
};
template <>
struct RowStage<true> {
  uint4 weights[kStreamUnroll][2];
  float scales[2];
};

// A lane's place in its warp's list of units and stages.
template <typename Index, bool kFloat8 = false>
struct RowCursor {
  static constexpr int kLaneInputs = Weights16<kFloat8>::kCount;

  Index unit;
  int inner;

  __device__ void Next(int num_inputs, Index num_warps, int lane) {
    inner += kStreamUnroll * kStreamStep<kFloat8>;
    if (inner - lane * kLaneInputs < num_inputs) return;
    inner = lane * kLaneInputs;
    unit += num_warps;
  }
};

// Starts to load the first two stages of a warp. load(stage, cursor) starts to load a stage, and
// advance(cursor) goes on to the place of the next one. Afterwards `next` is the place of `odd`.
template <typename Stage, typename Cursor, typename Advance, typename Load>
__device__ __forceinline__ void StartStages(Stage& even, Stage& odd, Cursor& next,
                                            const Advance& advance, const Load& load) {
  load(even, next);
  advance(next);
  load(odd, next);
}

// Adds all stages of a warp. add(stage) adds one and moves `at`, the place of the stage that is
// added next. REQUIRES: after StartStages, with the same functions
template <typename Stage, typename Cursor, typename Index, typename Advance, typename Load,
          typename Add>
__device__ __forceinline__ void AddStages(Stage& even, Stage& odd, Cursor& next, const Cursor& at,
                                          Index num_units, const Advance& advance, const Load& load,
                                          const Add& add) {
  while (at.unit < num_units) {
    add(even);
    advance(next);
    load(even, next);
    if (at.unit >= num_units) break;
    add(odd);
    advance(next);
    load(odd, next);
  }
}

// Thread blocks whose warps have the same number of units each, but for the last ones.
inline unsigned StreamBlocksFor(int64_t num_units) {
  static const int num_processors = [] {
    int found = 1;
    (void)cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, 0);
    return found;
  }();
  const int64_t resident = int64_t{kStreamBlocks} * kStreamWarps * num_processors;
  const int64_t units_each = (num_units + resident - 1) / resident;
  const int64_t warps = (num_units + units_each - 1) / units_each;
  return static_cast<unsigned>((warps + kStreamWarps - 1) / kStreamWarps);
}

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_ROW_STREAM_CUH_
