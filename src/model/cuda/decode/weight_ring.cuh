// WeightRing: slots in shared memory through which one warp streams weights and pages of the KV
// cache to the computing warps of its block (persistent_layers.h).
//
// Each slot has two barriers: `full` completes when the bytes of a stage have arrived, `empty` when
// all computing warps have released the slot. Every user goes through the slots in the same order
// and keeps its own copy of WeightRing, which is its position.
//
//   producer                     consumer
//   ring.WaitUntilEmpty();       ring.WaitUntilFull();
//   copy to ring.at()            read ring.at()
//   ring.Next();                 ring.Release(lane);
//
// LayersProducer is the producer's warp. It streams the stages of layers_plan.h in the order in
// which LayersConsumer reads them. Weights depend on no other block, so it runs ahead as far as the
// ring has free slots.
// Thread-safety: the barriers order the accesses to a slot. One warp fills; kLayersWarps read.
#ifndef PACE_MODEL_CUDA_DECODE_WEIGHT_RING_CUH_
#define PACE_MODEL_CUDA_DECODE_WEIGHT_RING_CUH_

#include "model/cuda/bulk_copy.cuh"
#include "model/cuda/decode/attention_units.h"
#include "model/cuda/decode/persistent_layers.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {

// Barriers of shared memory, by address.
__device__ inline void InitBarrier(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ inline void ArriveAt(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void ExpectBytes(uint32_t barrier, uint32_t num_bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
               "r"(num_bytes)
               : "memory");
}
__device__ inline bool HasPassed(uint32_t barrier, uint32_t parity) {
  uint32_t passed;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
      "selp.u32 %0, 1, 0, p; }"
      : "=r"(passed)
      : "r"(barrier), "r"(parity)
      : "memory");
  return passed != 0;
}
__device__ inline void CopyInto(uint32_t to, const void* from, uint32_t num_bytes, uint32_t barrier,
                                uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(to),
      "l"(from), "r"(num_bytes), "r"(barrier), "l"(policy)
      : "memory");
}
__device__ inline uint64_t ReadOncePolicy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// The ring as one of its users sees it. Slots are filled and read in the same order by all.
struct WeightRing {
  const unsigned char* base;
  uint32_t full;  // addresses of barriers, one per slot
  uint32_t empty;
  int num_slots;
  int slot_bytes;
  int slot = 0;
  uint32_t parity = 0;

  __device__ WeightRing(const LayersPlan& plan, unsigned char* shared)
      : base(shared + plan.ring),
        full(SharedAddress(shared)),
        empty(full + 8 * static_cast<uint32_t>(plan.num_slots)),
        num_slots(plan.num_slots),
        slot_bytes(plan.slot_bytes) {}

  __device__ uint32_t full_barrier() const { return full + 8 * static_cast<uint32_t>(slot); }
  __device__ uint32_t empty_barrier() const { return empty + 8 * static_cast<uint32_t>(slot); }
  __device__ const unsigned char* at() const { return base + slot * slot_bytes; }
  __device__ void Next() {
    if (++slot < num_slots) return;
    slot = 0;
    parity ^= 1;
  }
  __device__ void WaitUntilFull() const {
    while (!HasPassed(full_barrier(), parity)) {
    }
  }
  __device__ void WaitUntilEmpty() const {
    while (!HasPassed(empty_barrier(), parity ^ 1)) {
    }
  }
  // By a warp that has read the slot.
  __device__ void Release(int lane) {
    __syncwarp();
    Skip(lane);
  }
  // By a warp that does not read the slot.
  __device__ void Skip(int lane) {
    if (kEveryThreadWaits || lane == 0) ArriveAt(empty_barrier());
    Next();
  }
};

// Of the layer, where those of the first layer are `first`.
__device__ inline const char* BytesAt(const void* first, int64_t layer, int64_t stride) {
  return static_cast<const char*>(first) + layer * stride;
}
__device__ inline const Half* HalvesAt(const void* first, int64_t layer, int64_t stride) {
  return reinterpret_cast<const Half*>(BytesAt(first, layer, stride));
}
__device__ inline const float* FloatsAt(const float* first, int64_t layer, int64_t stride) {
  if (first == nullptr) return nullptr;
  return reinterpret_cast<const float*>(BytesAt(first, layer, stride));
}

// Of each row's context.
template <int kRows>
__device__ void CountPages(const PersistentArguments& a, int (&num_pages)[kRows]) {
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    num_pages[row] = a.rows.positions[row] / kPageTokens + 1;
  }
}

// Offsets in shared memory, after the barriers of the ring.
inline constexpr int kNormSumsOffset = 512;  // partial sums of norms
inline constexpr int kRangesOffset = 640;    // of the products, in their order

__device__ inline OutputRange* RangesIn(unsigned char* shared) {
  return reinterpret_cast<OutputRange*>(shared + kRangesOffset);
}

// By the first threads of the block; a barrier of the block follows.
__device__ inline void ComputeRanges(const PersistentArguments& a, unsigned char* shared) {
  const auto product = static_cast<int>(threadIdx.x);
  if (product >= kNumProducts) return;
  RangesIn(shared)[product] =
      OutputsOf(a.plan.products[product], static_cast<int>(blockIdx.x), a.plan.num_blocks);
}

// The warp that fills the ring. REQUIRES: as LayersConsumer, for the lanes of one warp
template <int kRows, int kDim>
struct LayersProducer {
  const PersistentArguments& a;
  WeightRing ring;
  const OutputRange* const ranges;
  const int lane;
  const uint64_t policy = ReadOncePolicy();

  __device__ LayersProducer(const PersistentArguments& arguments, unsigned char* shared)
      : a(arguments),
        ring(a.plan, shared),
        ranges(RangesIn(shared)),
        lane(static_cast<int>(threadIdx.x % kWarp)) {}

  __device__ void Run() {
    int num_pages[kRows];
    CountPages(a, num_pages);
    const PersistentWeights& w = a.weights;
#pragma unroll 1
    for (int layer = 0; layer < a.num_layers; ++layer) {
#pragma unroll 1
      for (int product = 0; product < kNumProducts; ++product) {
        if (product == kOutputProduct) {
          const AttentionUnit unit =
              UnitOf(num_pages, kRows, a.shape.num_kv_heads, a.plan.max_splits, layer,
                     static_cast<int>(blockIdx.x), a.plan.num_blocks);
          if (unit.is_there) StreamPages(unit, layer);
        }
        const void* const weight = product == kQkvProduct      ? w.qkv
                                   : product == kOutputProduct ? w.output
                                   : product == kGateUpProduct ? w.gate_up
                                                               : w.down;
        Stream(a.plan.products[product], ranges[product], BytesAt(weight, layer, w.layer_stride));
      }
    }
  }

  // REQUIRES: lanes below `count` copy num_bytes each; the slot is empty
  __device__ void Fill(int count, const void* from, int offset, int num_bytes) {
    if (lane == 0) ExpectBytes(ring.full_barrier(), static_cast<uint32_t>(count * num_bytes));
    __syncwarp();
    if (lane < count) {
      CopyInto(SharedAddress(ring.at() + offset), from, static_cast<uint32_t>(num_bytes),
               ring.full_barrier(), policy);
    }
    ring.Next();
  }

  __device__ void Stream(const ProductPlan& plan, const OutputRange& range, const char* weight) {
    const int width = plan.weight_bytes;
#pragma unroll 1
    for (int first = 0; first < range.count; first += plan.tile_rows) {
#pragma unroll 1
      for (int part = 0; part < plan.rows_per_output; ++part) {
        const Tile tile = TileOf(plan, range, first, part);
        const int64_t row = tile.row + min(lane, tile.count - 1);
        const char* const from = weight + row * plan.num_inputs * width;
        const int offset = lane * StageStride(plan);
#pragma unroll 1
        for (int k = 0; k < plan.num_inputs; k += plan.chunk) {
          ring.WaitUntilEmpty();
          Fill(tile.count, from + k * width, offset, width * min(plan.chunk, plan.num_inputs - k));
        }
      }
    }
  }

  __device__ void StreamPages(const AttentionUnit& unit, int layer) {
    constexpr int kPage = 2 * PageElements(kDim);
    const Half* const cache = HalvesAt(a.cache, layer, a.layer_cache_bytes) + unit.kv_head * kPage;
    const int64_t page_stride = static_cast<int64_t>(a.shape.num_kv_heads) * kPage;
    const int32_t* const blocks = a.rows.blocks + a.rows.tables[unit.row];
    int loaded_from = unit.first_page;  // the lanes hold the blocks of pages from this one
    int32_t block = 0;
#pragma unroll 1
    for (int page = unit.first_page; page < unit.end_page; page += a.plan.slot_pages) {
      const int count = min(a.plan.slot_pages, unit.end_page - page);
      if (page == unit.first_page || page + count > loaded_from + static_cast<int>(kWarp)) {
        loaded_from = page;
        block = blocks[min(page + lane, unit.end_page - 1)];
      }
      const int32_t page_block = __shfl_sync(kAllLanes, block, page - loaded_from + lane);
      ring.WaitUntilEmpty();
      Fill(count, cache + page_block * page_stride, lane * 2 * kPage, 2 * kPage);
    }
  }
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_WEIGHT_RING_CUH_
