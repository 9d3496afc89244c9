// Attention of LayersConsumer (layers_consumer.cuh): pages of the KV cache come from the ring.
//
// A block computes at most one unit (attention_units.h): its warps take the pages of the unit in
// turn, then combine their partial results. Where a context is divided over blocks, these exchange
// their partial results through cells. The block of the last split also stores the newest key and
// value in the cache.
#ifndef PACE_MODEL_CUDA_DECODE_RING_ATTENTION_CUH_
#define PACE_MODEL_CUDA_DECODE_RING_ATTENTION_CUH_

#include "model/cuda/decode/attention_fragments.cuh"
#include "model/cuda/decode/layers_consumer.cuh"

namespace pace::cuda {

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::LoadHead(int row, int head, int layer,
                                                               Half* to) const {
  constexpr int kHalf = kDim / 2;
  constexpr int kCount = kHalf / 32;  // pairs of a lane
  const PersistentWeights& w = a.weights;
  const auto floats = [&](const float* first) { return FloatsAt(first, layer, w.layer_stride); };
  const bool is_value = head >= a.shape.num_heads + a.shape.num_kv_heads;
  const float* const bias = floats(w.qkv_bias);
  const float* const norm =
      is_value ? nullptr : floats(head < a.shape.num_heads ? w.q_norm : w.k_norm);
  float added[2][kCount] = {};
  float scale[2][kCount] = {};
#pragma unroll
  for (int p = 0; p < kCount; ++p) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int i = lane + p * 32 + part * kHalf;
      if (bias != nullptr) added[part][p] = __ldg(bias + head * kDim + i);
      if (norm != nullptr) scale[part][p] = __ldg(norm + i);
    }
  }
  const Cell* const from =
      exchange.qkv + row * a.plan.products[kQkvProduct].num_outputs + head * kDim + lane;
  float low[kCount];
  float high[kCount];
  bool is_complete;
  do {
    is_complete = true;
#pragma unroll
    for (int p = 0; p < kCount; ++p) {
      const Cell first = LoadCell(from + p * 32);
      const Cell second = LoadCell(from + p * 32 + kHalf);
      is_complete = is_complete && HasEpoch(first, epoch + 1) && HasEpoch(second, epoch + 1);
      low[p] = FloatOf(first) + added[0][p];
      high[p] = FloatOf(second) + added[1][p];
    }
  } while (!is_complete);
  __syncwarp();
  if (norm != nullptr) {
    float squares = 0;
#pragma unroll
    for (int p = 0; p < kCount; ++p) squares += low[p] * low[p] + high[p] * high[p];
    const float factor = rsqrtf(WarpSum(squares) / static_cast<float>(kDim) + a.epsilon);
#pragma unroll
    for (int p = 0; p < kCount; ++p) {
      low[p] *= factor * scale[0][p];
      high[p] *= factor * scale[1][p];
    }
  }
#pragma unroll
  for (int p = 0; p < kCount; ++p) {
    const int i = lane + p * 32;
    const float2 rotation = is_value ? make_float2(1, 0) : rotations[row * kHalf + i];
    to[i] = FromFloat<Half>(low[p] * rotation.x - high[p] * rotation.y);
    to[i + kHalf] = FromFloat<Half>(high[p] * rotation.x + low[p] * rotation.y);
  }
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::Attend(const AttentionUnit& unit, int layer) {
  const int group = a.shape.num_heads / a.shape.num_kv_heads;
  const int first_head = unit.kv_head * group;
  const int position = a.rows.positions[unit.row];
  const int64_t newest_block = a.rows.blocks[a.rows.tables[unit.row] + position / kPageTokens];
  // Shared memory: of each warp largest scores, sums of weights, sums of values.
  float* const largest = reinterpret_cast<float*>(work);
  float* const weights = largest + kWarps * kMaxHeadGroup;
  float* const values = weights + kWarps * kMaxHeadGroup;
  // Queries, then key and value of the newest token.
  const int num_loaded = unit.is_last ? group + 2 : group;
#pragma unroll 1
  for (int i = warp; i < num_loaded; i += kWarps) {
    const int head = i < group
                         ? first_head + i
                         : a.shape.num_heads + unit.kv_head + (i - group) * a.shape.num_kv_heads;
    LoadHead(unit.row, head, layer, heads + i * kDim);
  }
  // Also: all warps have read the inputs before.
  SyncConsumers();

  const int newest_page = unit.end_page - 1;
  const bool has_newest = unit.is_last && (newest_page - unit.first_page) % kWarps == warp;
  const int used = min(kWarps, unit.end_page - unit.first_page);
  WarpColumns<kDim, 1> columns;
  columns.Clear();
  columns.LoadQuery(0, lane / 4 < group ? heads + lane / 4 * kDim : nullptr, lane % 4);
  columns.last[0][0] = columns.last[0][1] = position;
  const float scale = kLog2E * rsqrtf(static_cast<float>(kDim));
  constexpr int kPage = 2 * PageElements(kDim);
#pragma unroll 1
  for (int first = unit.first_page; first < unit.end_page; first += a.plan.slot_pages) {
    const int count = min(a.plan.slot_pages, unit.end_page - first);
    ring.WaitUntilFull();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const int page = first + i;
      if ((page - unit.first_page) % kWarps != warp) continue;
      const Half* const tokens = reinterpret_cast<const Half*>(ring.at()) + i * kPage;
      if (has_newest && page == newest_page) {
        StoreNewest(heads + group * kDim, const_cast<Half*>(tokens), unit, layer, position,
                    newest_block);
      }
      columns.Attend(tokens, page * kPageTokens, scale, lane);
      // The slot is filled again by asynchronous copies.
      if (has_newest && page == newest_page) {
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      }
    }
    ring.Release(lane);
  }
  if (warp < used) {
    columns.JoinSums();
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int column = lane % 4 * 2 + c;
      if (column >= group) continue;
#pragma unroll
      for (int s = 0; s < kDim / 16; ++s) {
        float* const to = values + (warp * group + column) * kDim + s * 16 + lane / 4;
        to[0] = columns.out[0][s][c];
        to[8] = columns.out[0][s][c + 2];
      }
      if (lane / 4 != 0) continue;
      largest[warp * kMaxHeadGroup + column] = columns.largest[0][c];
      weights[warp * kMaxHeadGroup + column] = columns.sum[0][c];
    }
  }
  SyncConsumers();
  const int out = (unit.row * a.shape.num_heads + first_head) * kDim / 2;
  Cell* const partial =
      exchange.partial +
      static_cast<int64_t>(unit.row * a.shape.num_heads + first_head) * a.plan.max_splits * kPart;
  // Pairs of outputs.
  const int num_pairs = group * kDim / 2;
#pragma unroll 1
  for (int i = thread; i < num_pairs; i += kThreads) {
    const int column = i / (kDim / 2);
    const int d = 2 * i % kDim;
    float top = -INFINITY;
#pragma unroll 1
    for (int other = 0; other < used; ++other) {
      top = fmaxf(top, largest[other * kMaxHeadGroup + column]);
    }
    float weight = 0;
    float2 sum = make_float2(0, 0);
#pragma unroll 1
    for (int other = 0; other < used; ++other) {
      const float share = exp2f(largest[other * kMaxHeadGroup + column] - top);
      weight += share * weights[other * kMaxHeadGroup + column];
      const float2 its_sum =
          *reinterpret_cast<const float2*>(values + (other * group + column) * kDim + d);
      sum.x += share * its_sum.x;
      sum.y += share * its_sum.y;
    }
    if (unit.num_splits == 1) {
      PublishPair(exchange.attended, out + i, PackHalves(sum.x / weight, sum.y / weight));
      continue;
    }
    Cell* const part = partial + (column * a.plan.max_splits + unit.split) * kPart;
    Publish(part + d, CellPair{CellOf(sum.x, epoch + 1), CellOf(sum.y, epoch + 1)});
    if (d == 0) {
      Publish(part + kDim, CellPair{CellOf(top, epoch + 1), CellOf(weight, epoch + 1)});
    }
  }
  if (unit.num_splits > 1) CombineSplits(unit, partial, out, num_pairs);
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::CombineSplits(const AttentionUnit& unit,
                                                                    const Cell* partial, int out,
                                                                    int num_pairs) {
  constexpr int kSharing = 8;            // lanes that share a pair of outputs
  constexpr int kPairs = 32 / kSharing;  // of a warp
  constexpr float kLowest = -1e30F;      // below any score; finite
  const OutputRange range = RangeOf(num_pairs, unit.split, unit.num_splits);
#pragma unroll 1
  for (int first = warp * kPairs; first < range.count; first += kWarps * kPairs) {
    const int index = first + lane / kSharing;
    const int pair = range.first + min(index, range.count - 1);
    const Cell* const parts = partial + pair / (kDim / 2) * a.plan.max_splits * kPart;
    const int d = 2 * pair % kDim;
    float top = kLowest;
    float weight = 0;
    float2 sum = make_float2(0, 0);
    const auto add = [&](float its_top, float its_weight, float its_x, float its_y) {
      const float larger = fmaxf(top, its_top);
      const float mine = exp2f(top - larger);
      const float theirs = exp2f(its_top - larger);
      weight = weight * mine + its_weight * theirs;
      sum.x = sum.x * mine + its_x * theirs;
      sum.y = sum.y * mine + its_y * theirs;
      top = larger;
    };
#pragma unroll 1
    for (int split = lane % kSharing; split < unit.num_splits; split += kSharing) {
      const Cell* const part = parts + split * kPart;
      CellPair sums;
      CellPair scores;
      while (true) {
        sums = LoadPair(part + d);
        scores = LoadPair(part + kDim);
        if (HasEpoch(sums, epoch + 1) && HasEpoch(scores, epoch + 1)) break;
      }
      add(FloatOf(scores.first), FloatOf(scores.second), FloatOf(sums.first), FloatOf(sums.second));
    }
    __syncwarp();
#pragma unroll
    for (unsigned step = kSharing / 2; step > 0; step /= 2) {
      add(__shfl_xor_sync(kAllLanes, top, step), __shfl_xor_sync(kAllLanes, weight, step),
          __shfl_xor_sync(kAllLanes, sum.x, step), __shfl_xor_sync(kAllLanes, sum.y, step));
    }
    if (lane % kSharing == 0 && index < range.count) {
      PublishPair(exchange.attended, out + pair, PackHalves(sum.x / weight, sum.y / weight));
    }
  }
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::StoreNewest(const Half* newest, Half* page,
                                                                  const AttentionUnit& unit,
                                                                  int layer, int position,
                                                                  int64_t block) const {
  constexpr int kPage = 2 * PageElements(kDim);
  const int token = position % kPageTokens;
  Half* const cached = const_cast<Half*>(HalvesAt(a.cache, layer, a.layer_cache_bytes)) +
                       (block * a.shape.num_kv_heads + unit.kv_head) * kPage;
#pragma unroll
  for (int d = lane; d < kDim; d += 32) {
    const int key = KeyIndex(token, d);
    const int value = PageElements(kDim) + ValueIndex(token, d);
    page[key] = cached[key] = newest[d];
    page[value] = cached[value] = newest[kDim + d];
  }
  __syncwarp();
}

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_RING_ATTENTION_CUH_
