// LayersPlan: which weights each block of the persistent kernel (persistent_layers.h) streams.
//
// Every product of a layer is divided into ranges of outputs, one per block. A block streams its
// rows of the matrix through a ring of stages in shared memory. A stage holds up to kTileRows rows
// (a tile) and a piece of their inputs. Gate and up of the same outputs are successive tiles. The
// pages of attention (attention_units.h) go through the same ring.
//
// Producer and consumers of a ring, and the tests, derive the same stages from these functions.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_CUDA_DECODE_LAYERS_PLAN_H_
#define PACE_MODEL_CUDA_DECODE_LAYERS_PLAN_H_

#include <cstdint>
#include <optional>

#include "model/cuda/cache_layout.h"

namespace pace::cuda {

// Rows of a pass that the kernel computes at most.
inline constexpr int kMaxLayersRows = 2;
// Warps of a block that compute; one more streams.
inline constexpr int kLayersWarps = 8;
inline constexpr int kTileRows = 8;
// Inputs come in pieces of this many: a warp's step of each half of a stage.
inline constexpr int kInputStep = 64;
inline constexpr int kInputPad = 64;  // bytes after each row of inputs
// Warps that share a stage of weights; other warps compute other stages meanwhile.
inline constexpr int kStageWarps = 2;
inline constexpr int kMaxNormWidth = 5120;
inline constexpr int kMaxLayersSplits = 32;
// Heads that share a key/value head.
inline constexpr int kMaxHeadGroup = 8;

// Of a dense network.
struct LayersShape {
  int num_rows = 0;  // of the pass
  int hidden = 0;
  int intermediate = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  // Of an element of the matrices: halves, or eight bits with a scale for each row.
  int weight_bytes = 2;
};

struct ProductPlan {
  int num_outputs = 0;
  int num_inputs = 0;
  // 2: gate and up, whose rows of one output are num_outputs apart.
  int rows_per_output = 1;
  int tile_rows = 0;
  int chunk = 0;  // inputs of a stage, but for the last of a row; a multiple of kInputStep
  int num_chunks = 0;
  int weight_bytes = 2;
};

// The products of a layer, in their order.
enum LayerProduct { kQkvProduct, kOutputProduct, kGateUpProduct, kDownProduct, kNumProducts };

struct LayersPlan {
  ProductPlan products[kNumProducts];
  int num_blocks = 0;
  int max_splits = 0;
  int slot_pages = 0;  // of one head's keys and values
  int num_slots = 0;
  int slot_bytes = 0;
  int64_t bytes_ahead = 0;  // weights that the ring holds on average
  // Offsets in shared memory. `work` holds a product's inputs or attention's partial results.
  int rotations = 0;     // cosines and sines of the rows' positions
  int sums = 0;          // of a product's rows, in parts
  int own_residual = 0;  // elements of the residual stream that the block adds to
  int scales = 0;        // of the matrix rows of two products in turn, for eight bits
  int max_rows = 0;      // matrix rows of a block in one product
  int heads = 0;         // of an attention unit: queries, key and value of the newest token
  int work = 0;
  int ring = 0;
  int shared_bytes = 0;
};

// Nullopt where the kernel has no such case: the other kernels compute the pass.
std::optional<LayersPlan> PlanLayers(const LayersShape& shape, int num_processors,
                                     int max_shared_bytes);

struct OutputRange {
  int first = 0;
  int count = 0;
};

PACE_HOST_DEVICE constexpr OutputRange RangeOf(int num_outputs, int block, int num_blocks) {
  const int first = num_outputs * block / num_blocks;
  return {first, num_outputs * (block + 1) / num_blocks - first};
}

// Of a product: pairs of outputs, which are one word for others.
PACE_HOST_DEVICE constexpr OutputRange OutputsOf(const ProductPlan& plan, int block,
                                                 int num_blocks) {
  const OutputRange pairs = RangeOf(plan.num_outputs / 2, block, num_blocks);
  return {2 * pairs.first, 2 * pairs.count};
}

// Rows of a stage: `count` rows of the matrix from `row`, for outputs from `first` of the range.
struct Tile {
  int first = 0;
  int row = 0;
  int count = 0;
};

// REQUIRES: first < range.count is a multiple of tile_rows; part < rows_per_output
PACE_HOST_DEVICE constexpr Tile TileOf(const ProductPlan& plan, const OutputRange& range, int first,
                                       int part) {
  const int left = range.count - first;
  return {first, range.first + first + part * plan.num_outputs,
          left < plan.tile_rows ? left : plan.tile_rows};
}

// Bytes from a row of a stage to the next. The pad makes the rows that a warp reads at a time lie
// in different banks.
PACE_HOST_DEVICE constexpr int StagePad(int weight_bytes) {
  return 32 * weight_bytes;
}
PACE_HOST_DEVICE constexpr int StageStride(const ProductPlan& plan) {
  return plan.weight_bytes * plan.chunk + StagePad(plan.weight_bytes);
}

// Parts of the sum of a row: of every chunk, one for each of its warps. And the distance of rows.
PACE_HOST_DEVICE constexpr int NumSums(const ProductPlan& plan) {
  return plan.num_chunks * kStageWarps;
}
PACE_HOST_DEVICE constexpr int SumStride(const ProductPlan& plan) {
  return NumSums(plan) + 1;
}

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_LAYERS_PLAN_H_
