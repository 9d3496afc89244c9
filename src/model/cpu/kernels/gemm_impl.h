// The float32 GEMM kernel, as a template over a vector level.
//
// Every output is one chain of fused multiply-adds over the depth, in order,
// whatever the tile.
#ifndef PACE_MODEL_CPU_KERNELS_GEMM_IMPL_H_
#define PACE_MODEL_CPU_KERNELS_GEMM_IMPL_H_

#include <cstdint>

#include "model/cpu/kernels/gemm_epilogue.h"
#include "model/cpu/kernels/kernels.h"

namespace pace {

// R rows by P panels. Weights come from beyond the second-level cache: while the
// row tiles of one panel are computed, each fetches its part of the next panel.
template <typename V, int R, int P>
void TileF32(const GemmTask& task, int64_t row, int64_t panel, const char* next, int64_t step) {
  using Vec = typename V::Vec;
  constexpr int kVecs = 2 * P;
  constexpr int kAhead = 16 * kPanelWidth;  // of the panel's own stream
  const int64_t stride = task.x_stride;
  const int64_t panel_size = task.depth * kPanelWidth;
  const float* w = static_cast<const float*>(task.panels) + panel * panel_size;
  // A pointer per four rows: more would not stay in registers.
  constexpr int kGroups = (R + 3) / 4;
  const float* x[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    x[g] = static_cast<const float*>(task.x) + (row + int64_t{4} * g) * stride;
  }
  Vec sum[R][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) sum[r][v] = V::Zero();
  }
  for (int64_t k = 0; k < task.depth; ++k) {
    __builtin_prefetch(next, 0, 2);
    next += step;
    Vec weights[kVecs];
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      const float* const from = w + (v / 2) * panel_size + (v % 2) * kLanes;
      if (R > 4) __builtin_prefetch(from + kAhead);
      weights[v] = V::Load(from);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec input = V::Broadcast(x[r / 4][(r % 4) * stride]);
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) sum[r][v] = V::Fma(input, weights[v], sum[r][v]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      ++x[g];
      asm("" : "+r"(x[g]));  // keeps the compiler from making a pointer per row
    }
    w += kPanelWidth;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      FinishPanel<V>(task, row + r, panel + p, sum[r][2 * p], sum[r][2 * p + 1]);
    }
  }
}

// The tile of `num_rows` <= R rows.
template <typename V, int R, int P>
void AnyTileF32(const GemmTask& task, int64_t row, int64_t num_rows, int64_t panel,
                const char* next, int64_t step) {
  if constexpr (R > 1) {
    if (num_rows < R) return AnyTileF32<V, R - 1, P>(task, row, num_rows, panel, next, step);
  }
  TileF32<V, R, P>(task, row, panel, next, step);
}

// P panels, all rows, in tiles of at most R rows and nearly equal height.
template <typename V, int R, int P>
void PanelF32(const GemmTask& task, int64_t panel) {
  const int64_t num_tiles = (task.num_rows + R - 1) / R;
  const int64_t height = task.num_rows / num_tiles;
  const int64_t num_higher = task.num_rows % num_tiles;
  const int64_t panel_bytes = task.depth * kPanelWidth * static_cast<int64_t>(sizeof(float));
  const char* const next = static_cast<const char*>(task.panels) + (panel + P) * panel_bytes;
  // A row of weights is 128 bytes.
  const int64_t step = int64_t{128} * P / num_tiles;
  int64_t row = 0;
  for (int64_t t = 0; t < num_tiles; ++t) {
    const int64_t rows = height + (t < num_higher ? 1 : 0);
    AnyTileF32<V, R, P>(task, row, rows, panel, next + t * P * panel_bytes / num_tiles, step);
    row += rows;
  }
}

template <typename V>
void GemmF32(const GemmTask& task) {
  int64_t panel = 0;
  // Few rows: one tile reads each weight once, and two panels hide the latency
  // of the additions. Middling: one higher tile. Many: the best ratio of loads.
  const bool one_tile = task.num_rows > 4 && task.num_rows <= V::kTileRows;
  if (!one_tile && (task.num_rows <= V::kPairRows || V::kPairRows > 4)) {
    for (; panel + 2 <= task.num_panels; panel += 2) PanelF32<V, V::kPairRows, 2>(task, panel);
  }
  for (; panel < task.num_panels; ++panel) PanelF32<V, V::kTileRows, 1>(task, panel);
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_GEMM_IMPL_H_
