// AttentionUnit: what one block of the persistent kernel (persistent_layers.h) attends to in a
// layer.
//
// A unit is a row, a key/value head and a part of the row's context. A block has at most one unit
// per layer; units move to other blocks from layer to layer, since their pages go through the ring
// that also holds the weights.
//
// Thread-safety: pure functions, for host and device.
#ifndef PACE_MODEL_CUDA_DECODE_ATTENTION_UNITS_H_
#define PACE_MODEL_CUDA_DECODE_ATTENTION_UNITS_H_

#include "model/cuda/cache_layout.h"

namespace pace::cuda {

inline constexpr int kLeastSplitPages = 4;

// How a row's context is divided.
struct ContextSplits {
  int num_splits = 0;
  int pages = 0;  // of a split but the last
};

PACE_HOST_DEVICE constexpr ContextSplits SplitContext(int num_pages, int max_splits) {
  int wanted = (num_pages + kLeastSplitPages - 1) / kLeastSplitPages;
  if (wanted > max_splits) wanted = max_splits;
  const int pages = (num_pages + wanted - 1) / wanted;
  return {(num_pages + pages - 1) / pages, pages};
}

struct AttentionUnit {
  bool is_there = false;
  int row = 0;
  int kv_head = 0;
  int split = 0;
  int num_splits = 0;
  int first_page = 0;
  int end_page = 0;
  bool is_last = false;  // holds the newest token
};

// `num_pages`: of each row's context.
PACE_HOST_DEVICE constexpr int NumUnits(const int* num_pages, int num_rows, int num_kv_heads,
                                        int max_splits) {
  int count = 0;
  for (int row = 0; row < num_rows; ++row) {
    count += num_kv_heads * SplitContext(num_pages[row], max_splits).num_splits;
  }
  return count;
}

PACE_HOST_DEVICE constexpr AttentionUnit UnitOf(const int* num_pages, int num_rows,
                                                int num_kv_heads, int max_splits, int layer,
                                                int block, int num_blocks) {
  const int num_units = NumUnits(num_pages, num_rows, num_kv_heads, max_splits);
  // Below 2^31: at most 2^10 blocks, and as many units as blocks.
  int index = (block + layer * num_units) % num_blocks;
  for (int row = 0; row < num_rows; ++row) {
    const ContextSplits splits = SplitContext(num_pages[row], max_splits);
    const int count = num_kv_heads * splits.num_splits;
    if (index < count) {
      const int split = index % splits.num_splits;
      const int first = split * splits.pages;
      const bool is_last = split == splits.num_splits - 1;
      return {true,
              row,
              index / splits.num_splits,
              split,
              splits.num_splits,
              first,
              is_last ? num_pages[row] : first + splits.pages,
              is_last};
    }
    index -= count;
  }
  return {};
}

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_ATTENTION_UNITS_H_
