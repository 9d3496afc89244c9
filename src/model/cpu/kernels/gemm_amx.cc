#include "model/cpu/kernels/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

#include "model/cpu/kernels/gemm_epilogue.h"
#include "model/cpu/kernels/vec_avx512.h"

namespace pace {
namespace {

// Tiles 0 to 3 hold sums [2 row tiles][2 halves of a panel], 4 and 5 inputs, 6
// and 7 weights. All are 16 rows of 64 bytes.
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileBytes = 1024;

struct TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Sums on their way to the output. Gates take long: the vector units finish them
// while the tile unit is at the next tiles.
struct Sums {
  alignas(64) float half[4][kTileRows][kLanes];
  int64_t row = 0;
  int64_t panel = 0;
  int64_t num_rows = 0;
  int64_t num_finished = 0;

  void Finish(const GemmTask& task, int64_t count) {
    const int64_t end = num_finished + count < num_rows ? num_finished + count : num_rows;
    for (int64_t i = num_finished; i < end; ++i) {
      const int64_t tile = i / kTileRows * 2;
      FinishPanel<Avx512>(task, row + i, panel, Avx512::Load(half[tile][i % kTileRows]),
                          Avx512::Load(half[tile + 1][i % kTileRows]));
    }
    num_finished = end;
  }
};

// Where the next panel's weights are fetched from, some lines per step.
struct Ahead {
  const char* from = nullptr;
  int64_t num_lines = 0;

  void Fetch() {
    for (int64_t i = 0; i < num_lines; ++i) {
      __builtin_prefetch(from, 0, 2);
      from += 64;
    }
  }
};

// One or two row tiles of a panel, while `before` is finished.
template <bool Two>
void RowTiles(const GemmTask& task, Ahead ahead, Sums& sums, Sums& before) {
  const auto* x = static_cast<const uint16_t*>(task.x) + sums.row * task.x_stride;
  const auto* w = static_cast<const char*>(task.panels) + sums.panel * task.depth * kPanelWidth * 2;
  const int64_t stride = task.x_stride * 2;
  const int64_t num_steps = task.depth / kDepthStep;
  const int64_t rows_per_step = (before.num_rows + num_steps - 1) / num_steps;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t step = 0; step < num_steps; ++step) {
    _tile_loadd(4, x, stride);
    _tile_loadd(6, w, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, w + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (Two) {
      _tile_loadd(5, x + kTileRows * task.x_stride, stride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    ahead.Fetch();
    before.Finish(task, rows_per_step);
    x += kDepthStep;
    w += 2 * kTileBytes;
  }
  _tile_stored(0, sums.half[0], 64);
  _tile_stored(1, sums.half[1], 64);
  if constexpr (Two) {
    _tile_stored(2, sums.half[2], 64);
    _tile_stored(3, sums.half[3], 64);
  }
  // Plain stores are quick, and would get in the way of later loads.
  if (task.epilogue != Epilogue::kGated) sums.Finish(task, sums.num_rows);
}

}  // namespace

void GemmAmx(const GemmTask& task) {
  alignas(64) TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.bytes_per_row[i] = 64;
    config.rows[i] = kTileRows;
  }
  _tile_loadconfig(&config);
  Sums buffers[2];
  int64_t turn = 0;
  // With few rows the weights are read at the speed of memory anyway.
  const int64_t num_pairs = (task.num_rows + kTileRows - 1) / (2 * kTileRows);
  const int64_t panel_bytes = task.depth * kPanelWidth * 2;
  for (int64_t panel = 0; panel < task.num_panels; ++panel) {
    Ahead ahead = {.from = static_cast<const char*>(task.panels) + (panel + 1) * panel_bytes,
                   .num_lines = num_pairs > 1 ? 32 / num_pairs : 0};
    for (int64_t row = 0; row < task.num_rows; row += 2 * kTileRows) {
      Sums& sums = buffers[turn];
      turn = 1 - turn;
      const int64_t left = task.num_rows - row;
      sums.row = row;
      sums.panel = panel;
      sums.num_rows = left < 2 * kTileRows ? left : 2 * kTileRows;
      sums.num_finished = 0;
      if (left > kTileRows) {
        RowTiles<true>(task, ahead, sums, buffers[turn]);
        ahead.from += ahead.num_lines * 64 * (task.depth / kDepthStep);
      } else {
        RowTiles<false>(task, ahead, sums, buffers[turn]);
      }
    }
  }
  buffers[1 - turn].Finish(task, 2 * kTileRows);
  _tile_release();
}

}  // namespace pace
#endif
