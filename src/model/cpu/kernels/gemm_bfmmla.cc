// bf16 GEMM on AArch64 processors with BFMMLA: two rows by two outputs over four
// inputs at a time.
//
// The instruction rounds intermediate sums to odd and flushes subnormals, so the
// bits differ from those of the other levels. Every row goes through the same
// instructions, alone or with others, so its bits depend on itself alone.
//
// Compiled for more than every AArch64 processor has: nothing here may be a
// template or inline function that another file compiles too.
#include "model/cpu/kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstdint>

namespace pace {
namespace {

constexpr int kQuad = 4;
constexpr int kHalfQuads = kLanes / kQuad;
constexpr int64_t kPairStride = 2 * kLanes;
constexpr int64_t kHalfStep = kDepthStep * kLanes;

// Sums of P pairs of rows by half a panel: a register holds two rows of two outputs.
template <int P>
struct Tile {
  float32x4_t sum[2 * kHalfQuads][P];

  Tile() {
#pragma GCC unroll 8
    for (int i = 0; i < 2 * kHalfQuads; ++i) {
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) sum[i][p] = vdupq_n_f32(0);
    }
  }

  // Four inputs: of each pair of rows, and of two rows of pairs of weights.
  void Add(const uint64x2_t (&inputs)[P], const uint16_t* w) {
#pragma GCC unroll 4
    for (int q = 0; q < kHalfQuads; ++q) {
      const uint32x4_t first = vreinterpretq_u32_u16(vld1q_u16(w + q * 2 * kQuad));
      const uint32x4_t second = vreinterpretq_u32_u16(vld1q_u16(w + kPairStride + q * 2 * kQuad));
      const bfloat16x8_t low = vreinterpretq_bf16_u32(vzip1q_u32(first, second));
      const bfloat16x8_t high = vreinterpretq_bf16_u32(vzip2q_u32(first, second));
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const bfloat16x8_t x = vreinterpretq_bf16_u64(inputs[p]);
        sum[2 * q][p] = vbfmmlaq_f32(sum[2 * q][p], x, low);
        sum[2 * q + 1][p] = vbfmmlaq_f32(sum[2 * q + 1][p], x, high);
      }
    }
  }

  // Columns [first, first + 16).
  void Store(float (*to)[kPanelWidth], int64_t first) const {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
      for (int q = 0; q < kHalfQuads; ++q) {
        const float32x4_t low = sum[2 * q][p];
        const float32x4_t high = sum[2 * q + 1][p];
        vst1q_f32(to[2 * p] + first + q * kQuad,
                  vcombine_f32(vget_low_f32(low), vget_low_f32(high)));
        vst1q_f32(to[2 * p + 1] + first + q * kQuad,
                  vcombine_f32(vget_high_f32(low), vget_high_f32(high)));
      }
    }
  }
};

// P pairs of rows by half 0 or 1 of a panel.
template <int P>
void MultiplyHalf(const GemmTask& task, int64_t row, int64_t panel, int64_t half,
                  float (*to)[kPanelWidth]) {
  const int64_t stride = task.x_stride;
  const uint16_t* const x = static_cast<const uint16_t*>(task.x) + row * stride;
  const uint16_t* w = static_cast<const uint16_t*>(task.panels) + panel * task.depth * kPanelWidth +
                      half * kHalfStep;
  constexpr int64_t kEight = 8;
  Tile<P> tile;
  for (int64_t k = 0; k < task.depth; k += kDepthStep, w += kHalfStep) {
    for (int64_t i = 0; i < kDepthStep; i += kEight, w += kEight / 2 * kPairStride) {
      uint64x2_t low[P];
      uint64x2_t high[P];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const uint16_t* const from = x + 2 * p * stride + k + i;
        const uint64x2_t even = vreinterpretq_u64_u16(vld1q_u16(from));
        const uint64x2_t odd = vreinterpretq_u64_u16(vld1q_u16(from + stride));
        low[p] = vzip1q_u64(even, odd);
        high[p] = vzip2q_u64(even, odd);
      }
      tile.Add(low, w);
      tile.Add(high, w + 2 * kPairStride);
    }
  }
  tile.Store(to, half * kLanes);
}

// Up to 2 P rows; the last pair may read a row beyond them, as GemmTask permits.
template <int P>
void RunPairs(const GemmTask& task, int64_t row, int64_t num_rows, int64_t panel) {
  float sums[2 * P][kPanelWidth];
  for (int64_t half = 0; half < 2; ++half) MultiplyHalf<P>(task, row, panel, half, sums);
  FinishNeonRows(task, row, num_rows, panel, sums);
}

}  // namespace

void GemmBfmmla(const GemmTask& task) {
  for (int64_t panel = 0; panel < task.num_panels; ++panel) {
    int64_t row = 0;
    for (; row + 2 < task.num_rows; row += 4) {
      const int64_t left = task.num_rows - row;
      RunPairs<2>(task, row, left < 4 ? left : 4, panel);
    }
    if (row < task.num_rows) RunPairs<1>(task, row, task.num_rows - row, panel);
  }
}

}  // namespace pace
#endif
