#include "model/cpu/gemm.h"

#include <algorithm>
#include <cmath>

namespace pace {
namespace {

// A share takes at least some microseconds, or taking it costs too much; longer
// ones, where there is enough work, so that each thread has some to give away.
constexpr double kLeastSeconds = 6e-6;
constexpr double kSharesPerThread = 8;
// Rough speed of one core, to choose shares by; results do not depend on it.
constexpr double kBytesPerSecond = 20e9;
constexpr double kFlopsPerSecond = 100e9;
constexpr double kBf16FlopsPerSecond = 800e9;

// Rows of a block: nearly equal blocks whose inputs stay in the second-level
// cache beside the panels. A multiple of what AMX takes at a time.
int64_t RowBlock(const PackedMatrix& matrix, int64_t num_rows) {
  constexpr int64_t kCacheBytes = int64_t{512} * 1024;
  constexpr int64_t kMultiple = 32;
  const int64_t row_bytes = matrix.depth * (matrix.is_bf16 ? 2 : 4);
  const int64_t most = std::clamp<int64_t>(kCacheBytes / row_bytes, 96, 384);
  const int64_t num_blocks = std::max<int64_t>(1, (num_rows + most - 1) / most);
  return RoundUp(std::max<int64_t>(1, (num_rows + num_blocks - 1) / num_blocks), kMultiple);
}

double SecondsPerPanel(const PackedMatrix& matrix, int64_t num_rows) {
  const double flops = 2.0 * static_cast<double>(num_rows * matrix.depth * kPanelWidth);
  const double speed = matrix.is_bf16 ? kBf16FlopsPerSecond : kFlopsPerSecond;
  return std::max(static_cast<double>(matrix.panel_bytes()) / kBytesPerSecond, flops / speed);
}

}  // namespace

void Gemm::Divide(std::span<const GemmProduct> products) {
  double total = 0;
  for (const GemmProduct& product : products) {
    total += SecondsPerPanel(*product.matrix, product.num_rows) *
             static_cast<double>(product.matrix->num_panels);
  }
  const double shares = kSharesPerThread * static_cast<double>(threads_.num_threads());
  const double wanted = std::max(kLeastSeconds, total / shares);
  is_small_ = total < kLeastSeconds;
  shares_.clear();
  for (int64_t p = 0; const GemmProduct& product : products) {
    const PackedMatrix& matrix = *product.matrix;
    const int64_t row_block = RowBlock(matrix, product.num_rows);
    for (int64_t row = 0; row < product.num_rows; row += row_block) {
      const int64_t num_rows = std::min(row_block, product.num_rows - row);
      // Panels go in pairs, as kernels take them.
      const double pair_seconds = 2 * SecondsPerPanel(matrix, num_rows);
      const int64_t step = 2 * std::max<int64_t>(1, std::llround(wanted / pair_seconds));
      for (int64_t panel = 0; panel < matrix.num_panels; panel += step) {
        shares_.push_back({.product = p,
                           .row = row,
                           .num_rows = num_rows,
                           .panel = panel,
                           .num_panels = std::min(step, matrix.num_panels - panel)});
      }
    }
    ++p;
  }
}

void Gemm::Run(std::span<const GemmProduct> products) {
  Divide(products);
  if (is_small_) {
    for (const Share& share : shares_) RunShare(products, share);
    return;
  }
  threads_.ParallelFor(static_cast<int64_t>(shares_.size()), [&](int64_t i, int64_t) {
    RunShare(products, shares_[static_cast<size_t>(i)]);
  });
}

void Gemm::RunShare(std::span<const GemmProduct> products, const Share& share) const {
  const GemmProduct& product = products[static_cast<size_t>(share.product)];
  const PackedMatrix& matrix = *product.matrix;
  const int64_t panel_width = product.epilogue == Epilogue::kGated ? kLanes : kPanelWidth;
  const int64_t in_bytes = matrix.is_bf16 ? 2 : 4;
  const int64_t out_bytes = product.out_is_bf16 ? 2 : 4;
  const int64_t out_at = share.row * product.out_stride + share.panel * panel_width;
  const GemmTask task = {
      .x = static_cast<const char*>(product.x) + share.row * product.x_stride * in_bytes,
      .x_stride = product.x_stride,
      .num_rows = share.num_rows,
      .panels = matrix.panels.As<char>() + share.panel * matrix.panel_bytes(),
      .num_panels = share.num_panels,
      .depth = matrix.depth,
      .bias = matrix.bias_of(share.panel),
      .epilogue = product.epilogue,
      .out_is_bf16 = product.out_is_bf16,
      .out = static_cast<char*>(product.out) + out_at * out_bytes,
      .out_stride = product.out_stride};
  (matrix.is_bf16 ? kernels_.gemm_bf16 : kernels_.gemm_f32)(task);
}

}  // namespace pace
