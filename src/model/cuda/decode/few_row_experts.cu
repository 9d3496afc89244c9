// Mixtures of experts for one or two rows: norm, router and choice in one kernel, then gate and up
// of all that is chosen, then down with the weighted sum.
//
// Plain multiply-adds, as in vector_product.cu: reading the matrices is all that takes time. A
// warp computes one output of one slot (gate and up: the two that belong together), or of down
// one output of a row over all its experts, so no output has two writers.
#include <cooperative_groups.h>

#include "model/cuda/decode/row_stream.cuh"

namespace pace::cuda {
namespace {

constexpr unsigned kClusterBlocks = 8;
constexpr int kRouteThreads = 512;
constexpr int kRouteWarps = kRouteThreads / 32;
constexpr int kMaxSlots = 32;  // a lane knows each
constexpr int64_t kMaxSharedBytes = 48 * 1024;
constexpr int kHeld = 8;  // loads of a row of the router before the predecessor ends

// A thread's groups of four elements of a row.
constexpr int kQuads = kMaxStreamNormInputs / 4 / kRouteThreads;
struct NormWeights {
  float4 quads[kQuads];

  // May be before the predecessor ends.
  __device__ explicit NormWeights(const StreamArguments& a) {
    const auto* const weight = reinterpret_cast<const float4*>(a.norm_weight);
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const int i = static_cast<int>(threadIdx.x) + k * kRouteThreads;
      quads[k] = 4 * i < a.norm_width ? weight[i] : make_float4(0, 0, 0, 0);
    }
  }
};

// Norms a row into `to`, in shared memory, and into `out` unless that is null.
__device__ void NormRow(const StreamArguments& a, const NormWeights& weights, int64_t row, Half* to,
                        Half* out, float* scratch) {
  const auto num_quads = static_cast<int>(a.norm_width / 4);
  const auto* const x =
      reinterpret_cast<const float4*>(static_cast<const float*>(a.x) + row * a.x_stride);
  float4 kept[kQuads];
  float squares = 0;
#pragma unroll
  for (int k = 0; k < kQuads; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kRouteThreads;
    kept[k] = i < num_quads ? x[i] : make_float4(0, 0, 0, 0);
    const float4 v = kept[k];
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  const float mean = BlockSum(squares, scratch) / static_cast<float>(a.norm_width);
  const float factor = rsqrtf(mean + a.epsilon);
#pragma unroll
  for (int k = 0; k < kQuads; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kRouteThreads;
    if (4 * i >= a.num_inputs) continue;
    const float4 w = weights.quads[k];
    const float4 v = kept[k];
    const uint2 halves = make_uint2(PackHalves(v.x * factor * w.x, v.y * factor * w.y),
                                    PackHalves(v.z * factor * w.z, v.w * factor * w.w));
    *reinterpret_cast<uint2*>(to + 4 * i) = halves;
    if (out != nullptr) *reinterpret_cast<uint2*>(out + 4 * i) = halves;
  }
  __syncthreads();
}

// The choice of one row, as Route defines it, by a block. `probabilities`: room for the logits'
// number, and up to the next multiple of four.
__device__ void Choose(const RouteArguments& r, int64_t row, const float* logits,
                       float* probabilities) {
  __shared__ int chosen[kMaxChosen];
  __shared__ float weights[kMaxChosen];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const auto thread = static_cast<int>(threadIdx.x);
  float largest = -INFINITY;
  for (int e = lane; e < r.num_experts; e += 32) largest = fmaxf(largest, logits[e]);
  largest = WarpMax(largest);
  float sum = 0;
  for (int e = lane; e < r.num_experts; e += 32) sum += expf(logits[e] - largest);
  sum = WarpSum(sum);
  const int padded = (r.num_experts + 3) / 4 * 4;
  for (int e = thread; e < padded; e += kRouteThreads) {
    probabilities[e] = e < r.num_experts ? expf(logits[e] - largest) / sum : -1.0F;
  }
  // What remains where all is NaN.
  if (thread < r.num_chosen) {
    chosen[thread] = thread;
    weights[thread] = -1;
  }
  __syncthreads();
  for (int e = thread; e < r.num_experts; e += kRouteThreads) {
    const float mine = probabilities[e];
    int before = 0;
    for (int j = 0; j < padded; j += 4) {
      const float4 others = *reinterpret_cast<const float4*>(probabilities + j);
      const float other[4] = {others.x, others.y, others.z, others.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        before += other[i] > mine || (other[i] == mine && j + i < e) ? 1 : 0;
      }
    }
    if (mine >= 0 && before < r.num_chosen) {
      chosen[before] = e;
      weights[before] = mine;
    }
  }
  __syncthreads();
  if (thread >= r.num_chosen) return;
  float total = 0;
  for (int c = 0; c < r.num_chosen; ++c) total += weights[c];
  r.experts[row * r.num_chosen + thread] = chosen[thread];
  r.weights[row * r.num_chosen + thread] = r.normalize ? weights[thread] / total : weights[thread];
}

// A cluster for each row; its first block makes the choice.
__global__ void __cluster_dims__(kClusterBlocks, 1, 1) __launch_bounds__(kRouteThreads)
    RouteRowsKernel(StreamArguments a, RouteArguments r, Half* normed) {
  __shared__ __align__(16) Half xs[kMaxStreamNormInputs];
  __shared__ float logits[kMaxExperts];
  __shared__ __align__(16) float probabilities[kMaxExperts];
  __shared__ float scratch[kWarp];
  const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  cluster.barrier_arrive();  // a block that has not begun has no memory to write to
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const auto rank = static_cast<int>(cluster.block_rank());
  const int first = rank * kRouteWarps + static_cast<int>(threadIdx.x / kWarp);
  const int64_t row = blockIdx.x / kClusterBlocks;
  const auto num_inputs = static_cast<int>(a.num_inputs);
  const auto* const weight = static_cast<const Half*>(a.weight);
  const auto load = [&](int expert, int inner) {
    const bool is_there = expert < r.num_experts && inner < num_inputs;
    return LoadOnce(weight + static_cast<int64_t>(is_there ? expert : 0) * num_inputs + inner,
                    is_there);
  };
  uint4 held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) held[i] = load(first, lane * 8 + i * kStreamStep<false>);
  const NormWeights norm_weights(a);
  WaitForPredecessor();
  ReleaseSuccessor();
  NormRow(a, norm_weights, row, xs, rank == 0 ? normed + row * num_inputs : nullptr, scratch);
  cluster.barrier_wait();
  float* const to = cluster.map_shared_rank(logits, 0);
  for (int expert = first; expert < r.num_experts;
       expert += static_cast<int>(kClusterBlocks) * kRouteWarps) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int inner = lane * 8 + i * kStreamStep<false>;
      const uint4 w = expert == first ? held[i] : load(expert, inner);
      sum = Dot(w, *reinterpret_cast<const uint4*>(xs + (inner < num_inputs ? inner : 0)), sum);
    }
    for (int inner = lane * 8 + kHeld * kStreamStep<false>; inner < num_inputs;
         inner += kStreamStep<false>) {
      sum = Dot(load(expert, inner), *reinterpret_cast<const uint4*>(xs + inner), sum);
    }
    sum = WarpSum(sum);
    if (lane == 0) to[expert] = sum;
  }
  cluster.sync();
  if (rank == 0) Choose(r, row, logits, probabilities);
}

// Halves from memory into shared memory, by the whole block.
__device__ void Share(const void* from, int64_t num_halves, Half* to) {
  for (int64_t i = threadIdx.x; i < num_halves / 8; i += blockDim.x) {
    reinterpret_cast<uint4*>(to)[i] = static_cast<const uint4*>(from)[i];
  }
  __syncthreads();
}

template <bool kFloat8>
__global__ void __launch_bounds__(kStreamWarps * 32, kStreamBlocks)
    ExpertGateKernel(FewRowExperts a) {
  using GateCursor = RowCursor<int, kFloat8>;
  using Stage = RowStage<kFloat8>;
  constexpr int kBytes = Weights16<kFloat8>::kBytes;
  constexpr int kStep = kStreamStep<kFloat8>;
  extern __shared__ __align__(16) unsigned char shared[];
  Half* const xs = reinterpret_cast<Half*>(shared);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const auto num_inputs = static_cast<int>(a.num_inputs);
  const auto width = static_cast<int>(a.width);
  const int num_slots = a.num_rows * a.num_chosen;
  const int num_units = num_slots * width;
  const int num_warps = static_cast<int>(gridDim.x) * kStreamWarps;
  // DownKernel counts on this order: when it starts, the choice has been made.
  WaitForPredecessor();
  ReleaseSuccessor();
  const int mine = lane < num_slots ? __ldcg(a.experts + lane) : 0;
  const auto* const weight = static_cast<const char*>(a.gate_up);
  const auto load = [&](Stage& stage, const GateCursor& from) {
    const bool is_unit = from.unit < num_units;
    const int unit = is_unit ? from.unit : 0;
    const int slot = unit / width;
    const int64_t expert = __shfl_sync(kAllLanes, mine, slot);
    const int row = unit - slot * width;
    const char* const gate =
        weight + (expert * a.expert_stride + static_cast<int64_t>(row) * num_inputs) * kBytes;
    const char* const up = gate + static_cast<int64_t>(width) * num_inputs * kBytes;
#pragma unroll
    for (int u = 0; u < kStreamUnroll; ++u) {
      const int inner = from.inner + u * kStep;
      const bool is_there = is_unit && inner < num_inputs;
      stage.weights[u][0] = LoadOnce(gate + inner * kBytes, is_there);
      stage.weights[u][1] = LoadOnce(up + inner * kBytes, is_there);
    }
    if constexpr (kFloat8) {
      const float* const scales = ScalesOf(a.gate_up_scales, expert, a.expert_stride);
      stage.scales[0] = __ldg(scales + row);
      stage.scales[1] = __ldg(scales + width + row);
    }
  };
  GateCursor next{.unit = static_cast<int>(blockIdx.x * kStreamWarps + threadIdx.x / kWarp),
                  .inner = lane * GateCursor::kLaneInputs};
  GateCursor at = next;
  Stage even;
  Stage odd;
  const auto advance = [&](GateCursor& cursor) { cursor.Next(num_inputs, num_warps, lane); };
  StartStages(even, odd, next, advance, load);
  Share(a.x, static_cast<int64_t>(a.num_rows) * num_inputs, xs);

  float gate = 0;
  float up = 0;
  // Adds a stage; where its unit ends, stores that.
  const auto add = [&](const Stage& stage) {
    const int slot = at.unit / width;
    const Half* const x = xs + slot / a.num_chosen * num_inputs;
#pragma unroll
    for (int u = 0; u < kStreamUnroll; ++u) {
      const int inner = at.inner + u * kStep;
      const Half* const v = x + (inner < num_inputs ? inner : 0);
      gate = Dot<kFloat8>(stage.weights[u][0], v, gate);
      up = Dot<kFloat8>(stage.weights[u][1], v, up);
    }
    const int unit = at.unit;
    at.Next(num_inputs, num_warps, lane);
    if (at.unit == unit) return;
    gate = WarpSum(gate);
    up = WarpSum(up);
    if constexpr (kFloat8) {
      gate *= stage.scales[0];
      up *= stage.scales[1];
    }
    if (lane == 0) {
      static_cast<Half*>(a.gated)[slot * a.gated_stride + unit - slot * width] =
          FromFloat<Half>(Silu(gate) * up);
    }
    gate = up = 0;
  };
  AddStages(even, odd, next, at, num_units, advance, load, add);
}

// Two experts at a time.
template <bool kFloat8>
struct DownCursor {
  static constexpr int kLaneInputs = Weights16<kFloat8>::kCount;

  int unit;
  int choice;
  int inner;  // of this lane

  __device__ void Next(int num_inputs, int num_chosen, int num_warps, int lane) {
    inner += kStreamUnroll * kStreamStep<kFloat8>;
    if (inner - lane * kLaneInputs < num_inputs) return;
    inner = lane * kLaneInputs;
    choice += 2;
    if (choice < num_chosen) return;
    choice = 0;
    unit += num_warps;
  }
};

template <bool kFloat8>
__global__ void __launch_bounds__(kStreamWarps * 32, kStreamBlocks)
    ExpertDownKernel(FewRowExperts a) {
  using Cursor = DownCursor<kFloat8>;
  using Stage = RowStage<kFloat8>;
  constexpr int kBytes = Weights16<kFloat8>::kBytes;
  constexpr int kStep = kStreamStep<kFloat8>;
  extern __shared__ __align__(16) unsigned char shared[];
  Half* const xs = reinterpret_cast<Half*>(shared);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const auto num_inputs = static_cast<int>(a.gated_stride);
  const auto num_outputs = static_cast<int>(a.num_outputs);
  const int num_slots = a.num_rows * a.num_chosen;
  const int num_units = a.num_rows * num_outputs;
  const int num_warps = static_cast<int>(gridDim.x) * kStreamWarps;
  // The choice is older than the predecessor (see ExpertGateKernel), so the first weights are
  // under way before that ends. Not through the first cache, which may hold an older choice.
  const int expert_of_lane = lane < num_slots ? __ldcg(a.experts + lane) : 0;
  const float weight_of_lane = lane < num_slots ? __ldcg(a.weights + lane) : 0.0F;
  const auto* const weight = static_cast<const char*>(a.down);
  const auto load = [&](Stage& stage, const Cursor& from) {
    const bool is_unit = from.unit < num_units;
    const int row = is_unit ? from.unit / num_outputs : 0;
    const int output = is_unit ? from.unit - row * num_outputs : 0;
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      const bool is_choice = is_unit && from.choice + w < a.num_chosen;
      const int slot = row * a.num_chosen + (is_choice ? from.choice + w : 0);
      const int64_t expert = __shfl_sync(kAllLanes, expert_of_lane, slot);
      const char* const matrix_row =
          weight + (expert * a.expert_stride + static_cast<int64_t>(output) * num_inputs) * kBytes;
#pragma unroll
      for (int u = 0; u < kStreamUnroll; ++u) {
        const int inner = from.inner + u * kStep;
        stage.weights[u][w] =
            LoadOnce(matrix_row + inner * kBytes, is_choice && inner < num_inputs);
      }
      if constexpr (kFloat8) {
        stage.scales[w] = __ldg(ScalesOf(a.down_scales, expert, a.expert_stride) + output);
      }
    }
  };
  Cursor next{.unit = static_cast<int>(blockIdx.x * kStreamWarps + threadIdx.x / kWarp),
              .choice = 0,
              .inner = lane * Cursor::kLaneInputs};
  Cursor at = next;
  Stage even;
  Stage odd;
  const auto advance = [&](Cursor& cursor) {
    cursor.Next(num_inputs, a.num_chosen, num_warps, lane);
  };
  StartStages(even, odd, next, advance, load);
  WaitForPredecessor();
  ReleaseSuccessor();
  const auto out_of = [&](int unit) {
    const int row = unit / num_outputs;
    return a.out + row * a.out_stride + unit - row * num_outputs;
  };
  float before = at.unit < num_units ? *out_of(at.unit) : 0.0F;
  Share(a.gated, static_cast<int64_t>(num_slots) * num_inputs, xs);

  float total = 0;
  // Adds a stage; where its unit ends, stores that.
  const auto add = [&](const Stage& stage) {
    const int first = at.unit / num_outputs * a.num_chosen;
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      const int slot = first + (at.choice + w < a.num_chosen ? at.choice + w : 0);
      const Half* const x = xs + slot * num_inputs;
      float sum = 0;
#pragma unroll
      for (int u = 0; u < kStreamUnroll; ++u) {
        const int inner = at.inner + u * kStep;
        sum = Dot<kFloat8>(stage.weights[u][w], x + (inner < num_inputs ? inner : 0), sum);
      }
      if constexpr (kFloat8) sum *= stage.scales[w];
      total = fmaf(__shfl_sync(kAllLanes, weight_of_lane, slot), sum, total);
    }
    const int unit = at.unit;
    at.Next(num_inputs, a.num_chosen, num_warps, lane);
    if (at.unit == unit) return;
    total = WarpSum(total);
    if (lane == 0) *out_of(unit) = before + total;
    total = 0;
    before = at.unit < num_units ? *out_of(at.unit) : 0.0F;
  };
  AddStages(even, odd, next, at, num_units, advance, load, add);
}

}  // namespace

bool CanRouteRows(const StreamArguments& router, const RouteArguments& route) {
  return route.num_rows <= kMaxExpertRows && router.norm_weight != nullptr &&
         router.bias == nullptr && router.num_inputs <= kMaxStreamNormInputs &&
         router.norm_width % 4 == 0 && route.num_experts <= kMaxExperts &&
         route.num_chosen <= kMaxChosen;
}

void RouteRows(const StreamArguments& router, const RouteArguments& route, void* normed,
               cudaStream_t stream) {
  Launch(RouteRowsKernel, kClusterBlocks * static_cast<unsigned>(route.num_rows), kRouteThreads, 0,
         stream, router, route, static_cast<Half*>(normed));
}

bool CanRunFewRows(const FewRowExperts& a) {
  const auto halves = static_cast<int64_t>(sizeof(Half));
  const int num_slots = a.num_rows * a.num_chosen;
  return a.num_rows <= kMaxExpertRows && num_slots <= kMaxSlots &&
         a.num_rows * a.num_inputs * halves <= kMaxSharedBytes &&
         num_slots * a.gated_stride * halves <= kMaxSharedBytes;
}

void RunFewRows(const FewRowExperts& a, cudaStream_t stream) {
  const int64_t num_slots = int64_t{a.num_rows} * a.num_chosen;
  const auto halves = static_cast<int64_t>(sizeof(Half));
  const bool is_float8 = a.gate_up_scales != nullptr;
  Launch(is_float8 ? ExpertGateKernel<true> : ExpertGateKernel<false>,
         StreamBlocksFor(num_slots * a.width), kStreamWarps * kWarp,
         static_cast<size_t>(a.num_rows * a.num_inputs * halves), stream, a);
  Launch(is_float8 ? ExpertDownKernel<true> : ExpertDownKernel<false>,
         StreamBlocksFor(a.num_rows * a.num_outputs), kStreamWarps * kWarp,
         static_cast<size_t>(num_slots * a.gated_stride * halves), stream, a);
}

}  // namespace pace::cuda
