// Cells: how the blocks of the persistent kernel (persistent_layers.h) exchange values.
//
// A cell holds a value and the epoch in which it was published, in one word that is stored and
// loaded as a whole. The reader knows the epoch that it needs and loads the cell again until it has
// that epoch. This needs no fence, since value and epoch cannot be seen apart.
//
//   Publish(cell, CellOf(value, epoch));                     // writer
//   do loaded = LoadCell(cell); while (!HasEpoch(loaded, epoch));  // reader
//
// REQUIRES: epochs of a cell only grow. All readers of a cell have read it before it is written
// again; blocks ensure that by waiting for each other's results.
// Thread-safety: all loads and stores are relaxed atomics of the device. A counter (Counter) is not
// ordered with the cells: it only tells when loading them is worthwhile.
#ifndef PACE_MODEL_CUDA_DECODE_EXCHANGE_CELLS_CUH_
#define PACE_MODEL_CUDA_DECODE_EXCHANGE_CELLS_CUH_

#include <cstdint>

#include "model/cuda/decode/layers_plan.h"

namespace pace::cuda {

__device__ inline uint32_t LoadRelaxed(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline void AddRelaxed(uint32_t* to) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(to) : "memory");
}

// A value in the low word, its epoch in the high word.
using Cell = uint64_t;

struct CellPair {
  Cell first = 0;
  Cell second = 0;
};

__device__ inline Cell CellOf(uint32_t value, uint32_t epoch) {
  return static_cast<Cell>(epoch) << 32 | value;
}
__device__ inline Cell CellOf(float value, uint32_t epoch) {
  return CellOf(__float_as_uint(value), epoch);
}
__device__ inline uint32_t WordOf(Cell cell) {
  return static_cast<uint32_t>(cell);
}
__device__ inline float FloatOf(Cell cell) {
  return __uint_as_float(WordOf(cell));
}
__device__ inline bool HasEpoch(Cell cell, uint32_t epoch) {
  return static_cast<uint32_t>(cell >> 32) == epoch;
}
__device__ inline bool HasEpoch(const CellPair& pair, uint32_t epoch) {
  return HasEpoch(pair.first, epoch) && HasEpoch(pair.second, epoch);
}
__device__ inline Cell LoadCell(const Cell* from) {
  Cell cell;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(cell) : "l"(from) : "memory");
  return cell;
}
// Each cell as a whole. REQUIRES: an even index
__device__ inline CellPair LoadPair(const Cell* from) {
  CellPair pair;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(pair.first), "=l"(pair.second)
               : "l"(from)
               : "memory");
  return pair;
}
__device__ inline void Publish(Cell* to, Cell cell) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(cell) : "memory");
}
__device__ inline void Publish(Cell* to, const CellPair& pair) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(pair.first),
               "l"(pair.second)
               : "memory");
}

// Values that many blocks read. A counter per kind counts the blocks that have published their part
// in this pass; it is zero before and after a pass.
enum AnnouncedValues { kResidualValues, kAttendedValues, kGatedValues, kNumAnnouncedValues };

inline constexpr int kCounterStride = 32;  // words; each counter has its own cache line

// Pointers into the memory that blocks exchange values in. `first` and `ended`: the first epoch of
// the next pass, and the blocks that have ended in this one.
struct Exchange {
  uint32_t* first = nullptr;
  uint32_t* ended = nullptr;
  Cell* residual = nullptr;  // floats
  Cell* qkv = nullptr;       // floats, without the bias
  Cell* attended = nullptr;  // pairs of halves
  Cell* gated = nullptr;     // pairs of halves
  // Floats: of a row, head and split its sums of values, largest score and sum of weights.
  Cell* partial = nullptr;
  int64_t num_bytes = 0;

  __device__ uint32_t* Counter(AnnouncedValues what) const {
    return first + (2 + what) * kCounterStride;
  }

  PACE_HOST_DEVICE Exchange(const LayersShape& shape, const LayersPlan& plan, void* at) {
    constexpr int64_t kHeader = (2 + kNumAnnouncedValues) * kCounterStride / 2;
    const int64_t rows = shape.num_rows;
    auto* const cells = static_cast<Cell*>(at);
    first = reinterpret_cast<uint32_t*>(cells);
    ended = first + kCounterStride;
    int64_t used = kHeader;
    const auto add = [&](int64_t count) {
      Cell* const part = cells + used;
      used += count + count % 2;
      return part;
    };
    residual = add(rows * shape.hidden);
    qkv = add(rows * plan.products[kQkvProduct].num_outputs);
    attended = add(rows * plan.products[kOutputProduct].num_inputs / 2);
    gated = add(rows * shape.intermediate / 2);
    partial = add(rows * shape.num_heads * plan.max_splits * (shape.head_dim + 2));
    num_bytes = used * static_cast<int64_t>(sizeof(Cell));
  }
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_EXCHANGE_CELLS_CUH_
