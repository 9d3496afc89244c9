#include "model/cuda/decode/layers_plan.h"

#include <algorithm>

namespace pace::cuda {
namespace {

// Barriers of the ring and scratch of norms.
constexpr int kHeadBytes = 1024;
constexpr int kMaxSlots = 24;
constexpr int kMinSlots = 3;
constexpr int kMaxBlocks = 1024;
// Sizes of a slot that are compared. Copies of its rows are long enough for full bandwidth, and
// there are enough slots for the ring to be filled evenly.
constexpr int kSlotUnit = 128;
constexpr int kSmallestSlot = 16 * 1024;
constexpr int kLargestSlot = 24 * 1024;

int CeilDiv(int n, int unit) {
  return (n + unit - 1) / unit;
}
int RoundUp(int n, int unit) {
  return CeilDiv(n, unit) * unit;
}

// Outputs of a block at most.
int LargestRange(int num_outputs, int num_blocks) {
  return 2 * CeilDiv(num_outputs / 2, num_blocks);
}

ProductPlan PlanProduct(int num_outputs, int num_inputs, int rows_per_output, int weight_bytes,
                        int num_blocks, int slot_bytes) {
  const int outputs = LargestRange(num_outputs, num_blocks);
  const int tile_rows = CeilDiv(outputs, CeilDiv(outputs, kTileRows));
  const int largest =
      (slot_bytes / tile_rows - StagePad(weight_bytes)) / (weight_bytes * kInputStep) * kInputStep;
  const int chunk = RoundUp(CeilDiv(num_inputs, CeilDiv(num_inputs, largest)), kInputStep);
  return {.num_outputs = num_outputs,
          .num_inputs = num_inputs,
          .rows_per_output = rows_per_output,
          .tile_rows = tile_rows,
          .chunk = chunk,
          .num_chunks = CeilDiv(num_inputs, chunk),
          .weight_bytes = weight_bytes};
}

// Weights of a layer that a block streams, and the stages that hold them.
struct Stream {
  int64_t num_bytes = 0;
  int64_t num_stages = 0;

  void Add(const ProductPlan& plan, int num_blocks) {
    const int outputs = LargestRange(plan.num_outputs, num_blocks);
    num_bytes += int64_t{plan.weight_bytes} * plan.rows_per_output * outputs * plan.num_inputs;
    num_stages += int64_t{1} * plan.rows_per_output * CeilDiv(outputs, plan.tile_rows) *
                  CeilDiv(plan.num_inputs, plan.chunk);
  }
};

bool IsWhole(int width) {
  return width > 0 && width % kInputStep == 0;
}

// REQUIRES: a shape that the kernel has a case for
std::optional<LayersPlan> PlanSlots(const LayersShape& shape, int num_blocks, int max_shared_bytes,
                                    int slot_bytes) {
  const int query_size = shape.num_heads * shape.head_dim;
  const int kv_size = shape.num_kv_heads * shape.head_dim;
  const int page_bytes = 4 * PageElements(shape.head_dim);
  const int least_row = shape.weight_bytes * kInputStep + StagePad(shape.weight_bytes);
  if (slot_bytes < page_bytes || slot_bytes < kTileRows * least_row) return std::nullopt;
  LayersPlan plan;
  plan.num_blocks = num_blocks;
  const auto product = [&](int num_outputs, int num_inputs, int rows_per_output) {
    return PlanProduct(num_outputs, num_inputs, rows_per_output, shape.weight_bytes, num_blocks,
                       slot_bytes);
  };
  plan.products[kQkvProduct] = product(query_size + 2 * kv_size, shape.hidden, 1);
  plan.products[kOutputProduct] = product(shape.hidden, query_size, 1);
  plan.products[kGateUpProduct] = product(shape.intermediate, shape.hidden, 2);
  plan.products[kDownProduct] = product(shape.hidden, shape.intermediate, 1);
  plan.max_splits = std::min(kMaxLayersSplits, num_blocks / (shape.num_rows * shape.num_kv_heads));
  plan.slot_bytes = slot_bytes;
  plan.slot_pages = slot_bytes / page_bytes;

  int most_inputs = 0;
  int most_sums = 0;
  Stream stream;
  for (const ProductPlan& one : plan.products) {
    const int matrix_rows = one.rows_per_output * LargestRange(one.num_outputs, num_blocks);
    plan.max_rows = std::max(plan.max_rows, matrix_rows);
    most_sums = std::max(most_sums, matrix_rows * SumStride(one));
    most_inputs = std::max(most_inputs, one.num_inputs);
    stream.Add(one, num_blocks);
  }
  const int group = shape.num_heads / shape.num_kv_heads;
  const int rows = shape.num_rows;
  const int input_bytes = rows * (2 * most_inputs + kInputPad);
  const int attention_bytes =
      kLayersWarps * group * shape.head_dim * 4 + kLayersWarps * kMaxHeadGroup * 2 * 4;
  plan.rotations = kHeadBytes;
  plan.sums = plan.rotations + rows * shape.head_dim / 2 * 8;
  plan.own_residual = plan.sums + rows * most_sums * 4;
  plan.scales = plan.own_residual + rows * LargestRange(shape.hidden, num_blocks) * 4;
  plan.heads = RoundUp(plan.scales + (shape.weight_bytes == 1 ? 2 * plan.max_rows * 4 : 0), 128);
  plan.work = RoundUp(plan.heads + (kMaxHeadGroup + 2) * shape.head_dim * 2, 128);
  plan.ring = RoundUp(plan.work + std::max(input_bytes, attention_bytes), 128);
  plan.num_slots = std::min(kMaxSlots, (max_shared_bytes - plan.ring) / slot_bytes);
  if (plan.num_slots < kMinSlots) return std::nullopt;
  plan.shared_bytes = plan.ring + plan.num_slots * slot_bytes;
  plan.bytes_ahead = plan.num_slots * stream.num_bytes / stream.num_stages;
  return plan;
}

}  // namespace

std::optional<LayersPlan> PlanLayers(const LayersShape& shape, int num_processors,
                                     int max_shared_bytes) {
  if (shape.num_rows < 1 || shape.num_rows > kMaxLayersRows) return std::nullopt;
  if (shape.head_dim != 64 && shape.head_dim != 128) return std::nullopt;
  if (shape.num_kv_heads < 1 || shape.num_heads < 1) return std::nullopt;
  if (shape.num_heads % shape.num_kv_heads != 0) return std::nullopt;
  if (shape.num_heads / shape.num_kv_heads > kMaxHeadGroup) return std::nullopt;
  if (!IsWhole(shape.hidden) || !IsWhole(shape.intermediate)) return std::nullopt;
  if (shape.weight_bytes != 1 && shape.weight_bytes != 2) return std::nullopt;
  if (shape.hidden > kMaxNormWidth) return std::nullopt;
  if (num_processors < 1 || num_processors > kMaxBlocks) return std::nullopt;
  if (shape.num_rows * shape.num_kv_heads > num_processors) return std::nullopt;
  std::optional<LayersPlan> best;
  for (int slot_bytes = kLargestSlot; slot_bytes >= kSmallestSlot; slot_bytes -= kSlotUnit) {
    const std::optional<LayersPlan> plan =
        PlanSlots(shape, num_processors, max_shared_bytes, slot_bytes);
    if (plan && (!best || plan->bytes_ahead > best->bytes_ahead)) best = plan;
  }
  return best;
}

}  // namespace pace::cuda
