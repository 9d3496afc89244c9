// LayersConsumer: a thread of the computing warps of the persistent kernel (persistent_layers.h).
//
// The computing warps of a block go through the layers together. In each phase they wait for the
// inputs that other blocks publish, read the block's weights or pages from the ring, and publish
// the results. This file has the state, the loop over layers and the waiting; ring_products.cuh
// defines the products and ring_attention.cuh attention.
//
// REQUIRES: constructed by threads 0 to kThreads - 1 of the block, after the barriers of the ring
// and the ranges (ComputeRanges) are visible to the block; all of them call Run.
// Thread-safety: one object per thread. Functions are called by all computing threads unless their
// comment says otherwise.
#ifndef PACE_MODEL_CUDA_DECODE_LAYERS_CONSUMER_CUH_
#define PACE_MODEL_CUDA_DECODE_LAYERS_CONSUMER_CUH_

#include "model/cuda/decode/attention_units.h"
#include "model/cuda/decode/exchange_cells.cuh"
#include "model/cuda/decode/weight_ring.cuh"

namespace pace::cuda {

template <int kRows, int kDim, bool kFloat8>
struct LayersConsumer {
  static constexpr int kWarps = kLayersWarps;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kNormVectors = (kMaxNormWidth / 4 + kThreads - 1) / kThreads;
  static constexpr int kPart = kDim + 2;  // cells of the partial result of a head and split
  static constexpr int kLoads = 10;       // pairs of cells that a thread loads at once
  static constexpr int kStagesAtOnce = kWarps / kStageWarps;

  const PersistentArguments& a;
  WeightRing ring;
  // Parts of shared memory (LayersPlan).
  float* const norm_sums;
  float2* const rotations;
  float* const sums;
  float* const own_residual;
  float* const all_scales;
  Half* const heads;
  unsigned char* const work;
  const OutputRange* const ranges;
  const Exchange exchange;
  const int thread;
  const int warp;
  const int lane;
  uint32_t epoch = 0;  // of the residual stream at the start of the layer
  int num_pages[kRows];

  __device__ LayersConsumer(const PersistentArguments& arguments, unsigned char* shared)
      : a(arguments),
        ring(a.plan, shared),
        norm_sums(reinterpret_cast<float*>(shared + kNormSumsOffset)),
        rotations(reinterpret_cast<float2*>(shared + a.plan.rotations)),
        sums(reinterpret_cast<float*>(shared + a.plan.sums)),
        own_residual(reinterpret_cast<float*>(shared + a.plan.own_residual)),
        all_scales(reinterpret_cast<float*>(shared + a.plan.scales)),
        heads(reinterpret_cast<Half*>(shared + a.plan.heads)),
        work(shared + a.plan.work),
        ranges(RangesIn(shared)),
        exchange(a.shape, a.plan, a.exchange),
        thread(static_cast<int>(threadIdx.x)),
        warp(thread / 32),
        lane(thread % 32) {}

  // A barrier of the computing warps.
  static __device__ void SyncConsumers() {
    asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
  }
  __device__ int block() const { return static_cast<int>(blockIdx.x); }
  __device__ Half* inputs() const { return reinterpret_cast<Half*>(work); }

  // Elements from a row of inputs to the next.
  static __device__ int InputStride(int num_inputs) { return num_inputs + kInputPad / 2; }

  // All layers of the pass.
  __device__ void Run();

  // Waits for `due` announcements of these values since the start of the pass.
  __device__ void WaitFor(AnnouncedValues what, uint32_t due);
  // By one thread, after the block has published its part.
  __device__ void Announce(AnnouncedValues what) const { AddRelaxed(exchange.Counter(what)); }
  // By any thread: a pair of attended or gated values.
  __device__ void PublishPair(Cell* all, int index, uint32_t halves) const {
    Publish(all + index, CellOf(halves, epoch + 1));
  }

  // Cosines and sines of the rows' positions, which all layers share.
  __device__ void ComputeRotations();
  // Loads and publishes the elements of the residual stream that this block adds to: output
  // i / kRows of row i % kRows.
  __device__ void PublishOwnResidual();
  // The last block to end resets the counters and sets the first epoch of the next pass: all blocks
  // have read this one's.
  __device__ void End();

  // Products: ring_products.cuh.

  // Waits for the residual stream and stores it as inputs, times the weights of the norm. The
  // factor of the norm is applied to the sums of the product instead (LoadFactors).
  __device__ void LoadNormInputs(const float* weight, uint32_t wanted, uint32_t due);
  // REQUIRES: after LoadNormInputs
  __device__ void LoadFactors(float (&factors)[kRows]) const;
  // Waits for attended or gated values of all rows and stores them as inputs.
  __device__ void LoadInputs(int num_inputs, AnnouncedValues what, uint32_t due);
  // The scales of the block's rows of the matrix, of two products in turn: while one warp publishes
  // the sums of a product, the others begin the next one.
  __device__ float* ScalesOf(int product) const {
    return all_scales + product % 2 * a.plan.max_rows;
  }
  // Of row `index` of the block, from memory.
  __device__ float LoadScale(int product, int index, int layer) const;
  // The block's rows of the matrix times the inputs; partial sums go to `sums`.
  __device__ void ComputeProduct(int product);
  // The sum of the block's matrix row `index`. REQUIRES: after ComputeProduct
  __device__ float SumOf(int product, int index, int row) const;
  // By one warp: publishes the sums of qkv, or adds them to the residual stream and publishes that.
  __device__ void PublishSums(int product, int layer, const float* bias);
  // By one warp: publishes pairs of gated values.
  __device__ void PublishGated(const float* bias);

  // Attention: ring_attention.cuh.

  // Computes the unit and publishes its attended values.
  __device__ void Attend(const AttentionUnit& unit, int layer);
  // By one warp: waits for a head of q, k or v; applies bias, norm and rotary embedding.
  __device__ void LoadHead(int row, int head, int layer, Half* to) const;
  // By one warp: stores the newest key and value in the cache and in the page in shared memory,
  // which was read before this pass had the token.
  __device__ void StoreNewest(const Half* newest, Half* page, const AttentionUnit& unit, int layer,
                              int position, int64_t block) const;
  // The blocks that share a context exchange their partial results; each combines a range of the
  // outputs.
  __device__ void CombineSplits(const AttentionUnit& unit, const Cell* partial, int out,
                                int num_pairs);
};

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::Run() {
  CountPages(a, num_pages);
  const auto num_units =
      static_cast<uint32_t>(NumUnits(num_pages, kRows, a.shape.num_kv_heads, a.plan.max_splits));
  ComputeRotations();
  epoch = __ldcg(exchange.first) + 1;
  PublishOwnResidual();
  const auto num_blocks = static_cast<uint32_t>(a.plan.num_blocks);
  const PersistentWeights& w = a.weights;
  // One copy of the code for all products: the instruction cache is small.
#pragma unroll 1
  for (int layer = 0; layer < a.num_layers; ++layer) {
    const auto floats = [&](const float* first) { return FloatsAt(first, layer, w.layer_stride); };
    // Computed while other blocks finish.
    const AttentionUnit unit = UnitOf(num_pages, kRows, a.shape.num_kv_heads, a.plan.max_splits,
                                      layer, block(), a.plan.num_blocks);
#pragma unroll 1
    for (int product = 0; product < kNumProducts; ++product) {
      const AnnouncedValues input = product == kOutputProduct ? kAttendedValues
                                    : product == kDownProduct ? kGatedValues
                                                              : kResidualValues;
      // Announcements since the start of the pass.
      const auto past = static_cast<uint32_t>(layer);
      const uint32_t due = input == kAttendedValues    ? num_units * (past + 1)
                           : input == kGatedValues     ? num_blocks * (past + 1)
                           : product == kGateUpProduct ? num_blocks * (2 * past + 2)
                                                       : num_blocks * (2 * past + 1);
      if (ranges[product].count > 0) {
        // Under way while the block waits for its inputs.
        const int num_scales =
            kFloat8 ? ranges[product].count * a.plan.products[product].rows_per_output : 0;
        float scale = 0;
        if (thread < num_scales) scale = LoadScale(product, thread, layer);
        if (input == kResidualValues) {
          LoadNormInputs(floats(product == kQkvProduct ? w.attention_norm : w.mlp_norm),
                         product == kQkvProduct ? epoch : epoch + 1, due);
        } else {
          LoadInputs(a.plan.products[product].num_inputs, input, due);
        }
        if (thread < num_scales) ScalesOf(product)[thread] = scale;
        for (int i = thread + kThreads; i < num_scales; i += kThreads) {
          ScalesOf(product)[i] = LoadScale(product, i, layer);
        }
        ComputeProduct(product);
      } else {
        // A block without outputs of this product waits and announces all the same.
        WaitFor(input, due);
      }
      // The first warp needs the sums of all warps; the others continue.
      if (kEveryThreadWaits || warp == 0) {
        asm volatile("bar.sync 2, %0;" ::"n"(kThreads) : "memory");
      } else {
        asm volatile("bar.arrive 2, %0;" ::"n"(kThreads) : "memory");
      }
      if (warp == 0) {
        if (product == kGateUpProduct) {
          PublishGated(floats(w.gate_up_bias));
        } else {
          PublishSums(product, layer,
                      floats(product == kOutputProduct ? w.output_bias
                             : product == kDownProduct ? w.down_bias
                                                       : nullptr));
        }
        __syncwarp();
        if (lane == 0 && product != kQkvProduct) {
          Announce(product == kGateUpProduct ? kGatedValues : kResidualValues);
        }
      }
      if (product != kQkvProduct) continue;
      if (unit.is_there) {
        Attend(unit, layer);
        SyncConsumers();
        if (thread == 0) Announce(kAttendedValues);
      }
    }
    epoch += 2;
  }
  End();
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::WaitFor(AnnouncedValues what, uint32_t due) {
  // The last warp polls for the block, since the first one publishes.
  if (thread == kThreads - 32) {
    const uint32_t* const counter = exchange.Counter(what);
    while (LoadRelaxed(counter) < due) {
    }
  }
  __syncwarp();
  SyncConsumers();
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::ComputeRotations() {
  constexpr int kHalf = kDim / 2;
#pragma unroll 1
  for (int i = thread; i < kRows * kHalf; i += kThreads) {
    float sine;
    float cosine;
    sincosf(static_cast<float>(a.rows.positions[i / kHalf]) * a.frequencies[i % kHalf], &sine,
            &cosine);
    rotations[i] = make_float2(cosine, sine);
  }
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::PublishOwnResidual() {
  const OutputRange range = ranges[kOutputProduct];
#pragma unroll 1
  for (int i = thread; i < range.count * kRows; i += kThreads) {
    const int at = i % kRows * a.shape.hidden + range.first + i / kRows;
    own_residual[i] = __ldcg(a.residual + at);
    Publish(exchange.residual + at, CellOf(own_residual[i], epoch));
  }
  SyncConsumers();
  if (thread == 0) Announce(kResidualValues);
}

template <int kRows, int kDim, bool kFloat8>
__device__ void LayersConsumer<kRows, kDim, kFloat8>::End() {
  if (thread != 0) return;
  __threadfence();
  if (atomicAdd(exchange.ended, 1U) != static_cast<uint32_t>(a.plan.num_blocks) - 1) return;
  __threadfence();
  for (int i = 0; i < kNumAnnouncedValues; ++i) {
    *exchange.Counter(static_cast<AnnouncedValues>(i)) = 0;
  }
  *exchange.first = epoch;
  *exchange.ended = 0;
}

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_LAYERS_CONSUMER_CUH_
