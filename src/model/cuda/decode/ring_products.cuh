// The products of LayersConsumer (layers_consumer.cuh): weights come from the ring, inputs and
// outputs are cells.
//
// A product has three steps: the inputs of all rows are copied from cells to shared memory;
// kStageWarps warps at a time compute a stage and store their part of each sum; one warp adds the
// parts and publishes the outputs. The order of the sums is fixed, so results are deterministic.
#ifndef PACE_MODEL_CUDA_DECODE_RING_PRODUCTS_CUH_
#define PACE_MODEL_CUDA_DECODE_RING_PRODUCTS_CUH_

#include "model/cuda/decode/float8.cuh"
#include "model/cuda/decode/layers_consumer.cuh"

namespace pace::cuda {

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::LoadNormInputs(const float* weight,
                                                                     uint32_t wanted,
                                                                     uint32_t due) {
  const int num_vectors = a.shape.hidden / 4;
  float4 scale[kNormVectors];
#pragma unroll
  for (int i = 0; i < kNormVectors; ++i) {
    const int at = thread + i * kThreads;
    scale[i] = at < num_vectors ? __ldg(reinterpret_cast<const float4*>(weight) + at)
                                : make_float4(0, 0, 0, 0);
  }
  WaitFor(kResidualValues, due);
  const int stride = InputStride(a.shape.hidden);
  CellPair x[kRows][kNormVectors][2];
  bool is_complete;
  do {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const Cell* const from = exchange.residual + row * a.shape.hidden;
#pragma unroll
      for (int i = 0; i < kNormVectors; ++i) {
        const int at = thread + i * kThreads;
        x[row][i][0] = x[row][i][1] = CellPair{CellOf(0U, wanted), CellOf(0U, wanted)};
        if (at < num_vectors) {
          x[row][i][0] = LoadPair(from + 4 * at);
          x[row][i][1] = LoadPair(from + 4 * at + 2);
        }
      }
    }
    is_complete = true;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int i = 0; i < kNormVectors; ++i) {
        is_complete &= HasEpoch(x[row][i][0], wanted) & HasEpoch(x[row][i][1], wanted);
      }
    }
  } while (!is_complete);
  __syncwarp();
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kNormVectors; ++i) {
      const int at = thread + i * kThreads;
      if (at >= num_vectors) continue;
      const float4 v = make_float4(FloatOf(x[row][i][0].first), FloatOf(x[row][i][0].second),
                                   FloatOf(x[row][i][1].first), FloatOf(x[row][i][1].second));
      const float4 s = scale[i];
      squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
      *reinterpret_cast<uint2*>(inputs() + row * stride + 4 * at) =
          make_uint2(PackHalves(v.x * s.x, v.y * s.y), PackHalves(v.z * s.z, v.w * s.w));
    }
    squares = WarpSum(squares);
    if (lane == 0) norm_sums[row * kWarps + warp] = squares;
  }
  SyncConsumers();
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::LoadFactors(float (&factors)[kRows]) const {
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) sum += norm_sums[row * kWarps + i];
    factors[row] = rsqrtf(sum / static_cast<float>(a.shape.hidden) + a.epsilon);
  }
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::LoadInputs(int num_inputs,
                                                                 AnnouncedValues what,
                                                                 uint32_t due) {
  const Cell* const from = what == kAttendedValues ? exchange.attended : exchange.gated;
  const int stride = InputStride(num_inputs);
  WaitFor(what, due);
  const int row_pairs = num_inputs / 4;
  const int num_pairs = kRows * row_pairs;
#pragma unroll 1
  for (int first = thread; first < num_pairs; first += kLoads * kThreads) {
    CellPair pairs[kLoads];
    bool is_complete;
    do {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int at = first + i * kThreads;
        pairs[i] = CellPair{CellOf(0U, epoch + 1), CellOf(0U, epoch + 1)};
        if (at < num_pairs) pairs[i] = LoadPair(from + 2 * at);
      }
      is_complete = true;
#pragma unroll
      for (int i = 0; i < kLoads; ++i) is_complete &= HasEpoch(pairs[i], epoch + 1);
    } while (!is_complete);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int at = first + i * kThreads;
      if (at >= num_pairs) continue;
      const int row = kRows > 1 && at >= row_pairs ? 1 : 0;
      *reinterpret_cast<uint2*>(inputs() + row * stride + 4 * (at - row * row_pairs)) =
          make_uint2(WordOf(pairs[i].first), WordOf(pairs[i].second));
    }
  }
  __syncwarp();
  SyncConsumers();
}

// Of a fragment's sixteen rows, eight are the first halves of a stage's rows and eight the second
// halves. Columns 0 and 1 hold the inputs of the first half, 2 and 3 of the second. Inputs are
// permuted within a step, in the same way on both sides, so that a lane's are consecutive.
template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::ComputeProduct(int product) {
  constexpr int kStep = kStageWarps * 32;
  constexpr int kWidth = Weights16<kFloat8>::kBytes;
  const ProductPlan& plan = a.plan.products[product];
  const OutputRange range = ranges[product];
  const int member = warp % kStageWarps;
  const int group = lane / 4;
  const int t = lane % 4;
  const bool has_inputs = group < 4 && group % 2 < kRows;
  const auto eight_at = [](const unsigned char* weights) {
    if constexpr (kFloat8) return HalvesOf(*reinterpret_cast<const uint2*>(weights));
    return *reinterpret_cast<const uint4*>(weights);
  };
  const int stride = StageStride(plan);
  const int sum_stride = SumStride(plan);
  const Half* const x = inputs() + (group % 2) * InputStride(plan.num_inputs) + t * 8;
  int until_own_stage = warp / kStageWarps;
  int stage = 0;
#pragma unroll 1
  for (int first = 0; first < range.count; first += plan.tile_rows) {
    const int rows = min(plan.tile_rows, range.count - first);
    // A lane without a row reads another one, which lies within the slot.
    const int offset = min(group, rows - 1) * stride + t * 8 * kWidth;
#pragma unroll 1
    for (int part = 0; part < plan.rows_per_output; ++part) {
      float* to = sums + (part * range.count + first + group) * kRows * sum_stride + member;
#pragma unroll 1
      for (int k = 0; k < plan.num_inputs; k += plan.chunk, to += kStageWarps) {
        // A warp skips stages that it has not seen full. It must not come to a slot again before
        // all have released what the slot held: the parity of the barriers would be ambiguous.
        if (stage++ >= ring.num_slots) ring.WaitUntilEmpty();
        if (until_own_stage-- > 0) {
          ring.Skip(lane);
          continue;
        }
        until_own_stage = kStagesAtOnce - 1;
        const int half = min(plan.chunk, plan.num_inputs - k) / 2;
        const unsigned char* const from = ring.at() + offset;
        const Half* const at = x + k + (group / 2 % 2) * half;
        float even[4] = {};
        float odd[4] = {};
        ring.WaitUntilFull();
#pragma unroll 4
        for (int i = member * 32; i < half; i += kStep) {
          const uint4 low = eight_at(from + kWidth * i);
          const uint4 high = eight_at(from + kWidth * (half + i));
          uint4 input = make_uint4(0, 0, 0, 0);
          if (has_inputs) input = *reinterpret_cast<const uint4*>(at + i);
          Multiply(even, low.x, high.x, low.y, high.y, input.x, input.y);
          Multiply(odd, low.z, high.z, low.w, high.w, input.z, input.w);
        }
        ring.Release(lane);
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
          float sum = t == 0 ? even[row] + odd[row] : even[2 + row] + odd[2 + row];
          sum += __shfl_xor_sync(kAllLanes, sum, 1);
          if (t == 0 && group < rows) to[row * sum_stride] = sum;
        }
      }
    }
  }
}

template <int kRows, int kDim, bool kFloat8>
__device__ float LayersConsumer<kRows, kDim, kFloat8>::LoadScale(int product, int index,
                                                                 int layer) const {
  const PersistentWeights& w = a.weights;
  const float* const first = product == kQkvProduct      ? w.qkv_scales
                             : product == kOutputProduct ? w.output_scales
                             : product == kGateUpProduct ? w.gate_up_scales
                                                         : w.down_scales;
  const OutputRange range = ranges[product];
  const int part = index < range.count ? 0 : 1;  // gate, up
  const int row = range.first + index + part * (a.plan.products[product].num_outputs - range.count);
  return __ldg(FloatsAt(first, layer, w.layer_stride) + row);
}

template <int kRows, int kDim, bool kFloat8>
__device__ float LayersConsumer<kRows, kDim, kFloat8>::SumOf(int product, int index,
                                                             int row) const {
  const int count = NumSums(a.plan.products[product]);
  const float* const from = sums + (index * kRows + row) * (count + 1);
  float sum = 0;
#pragma unroll 4
  for (int i = 0; i < count; ++i) sum += from[i];
  return kFloat8 ? sum * ScalesOf(product)[index] : sum;
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::PublishSums(int product, int layer,
                                                                  const float* bias) {
  const ProductPlan& plan = a.plan.products[product];
  const OutputRange range = ranges[product];
  const bool is_residual = product != kQkvProduct;
  Cell* const to = is_residual ? exchange.residual : exchange.qkv;
  // The residual stream has two epochs in a layer.
  const uint32_t new_epoch = product == kDownProduct ? epoch + 2 : epoch + 1;
  float factors[kRows] = {};
  if (!is_residual) LoadFactors(factors);
#pragma unroll 1
  for (int index = lane; index < range.count; index += 32) {
    const int output = range.first + index;
    const float added = bias == nullptr ? 0.0F : bias[output];
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      float sum = SumOf(product, index, row);
      if (is_residual) {
        sum += own_residual[index * kRows + row] + added;
        own_residual[index * kRows + row] = sum;
      } else {
        sum *= factors[row];
      }
      Publish(to + row * plan.num_outputs + output, CellOf(sum, new_epoch));
      // The result of the pass.
      if (product == kDownProduct && layer == a.num_layers - 1) {
        a.residual[row * plan.num_outputs + output] = sum;
      }
    }
  }
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::PublishGated(const float* bias) {
  const ProductPlan& plan = a.plan.products[kGateUpProduct];
  const OutputRange range = ranges[kGateUpProduct];
  float factors[kRows];
  LoadFactors(factors);
#pragma unroll 1
  for (int pair = lane; pair < range.count / 2; pair += 32) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      float values[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int index = 2 * pair + i;
        float gate = SumOf(kGateUpProduct, index, row) * factors[row];
        float up = SumOf(kGateUpProduct, range.count + index, row) * factors[row];
        if (bias != nullptr) {
          gate += bias[range.first + index];
          up += bias[plan.num_outputs + range.first + index];
        }
        values[i] = Silu(gate) * up;
      }
      PublishPair(exchange.gated, (row * plan.num_outputs + range.first) / 2 + pair,
                  PackHalves(values[0], values[1]));
    }
  }
}

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_RING_PRODUCTS_CUH_
