// GEMM on AArch64 without bf16 instructions, with the bits of the portable
// level: the sums of a tile stay in registers, and an input is a lane of one.
#include "model/cpu/kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include <algorithm>
#include <cstdint>

#include "model/cpu/kernels/gemm_epilogue.h"
#include "model/cpu/kernels/vec_neon.h"

namespace pace {
namespace {

constexpr int kQuad = 4;                            // lanes of a register
constexpr int kPanelQuads = kPanelWidth / kQuad;    // registers of a panel's width
constexpr int64_t kStepPairs = kDepthStep / 2;      // of a step of bf16
constexpr int64_t kHalfStep = kDepthStep * kLanes;  // bf16 weights of half a panel

// Sums of R rows by Q registers of outputs.
template <int R, int Q>
struct Tile {
  float32x4_t sum[Q][R];

  Tile() {
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum[q][r] = vdupq_n_f32(0);
    }
  }

  // Adds lane `Lane` of each row's inputs, times a register of weights.
  template <int Lane>
  void Add(int q, const float32x4_t (&inputs)[R], float32x4_t weights) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[q][r] = vfmaq_laneq_f32(sum[q][r], weights, inputs[r], Lane);
    }
  }
};

template <int Lane, int R, int Q>
inline void AddRow(const float32x4_t (&inputs)[R], const float* w, Tile<R, Q>& tile) {
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) tile.template Add<Lane>(q, inputs, vld1q_f32(w + q * kQuad));
}

// R rows of inputs, `stride` floats apart.
struct Inputs {
  const float* x = nullptr;
  int64_t stride = 0;
  int64_t depth = 0;
};

// Weights that come from beyond the second-level cache: while the tiles of one
// panel are computed, each fetches its part of the next panel.
struct Ahead {
  const char* from = nullptr;
  int64_t num_bytes = 0;  // per four inputs

  void Fetch() {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) __builtin_prefetch(from + i * num_bytes / 4, 0, 2);
    from += num_bytes;
  }
};

struct NothingAhead {
  void Fetch() const {}
};

// Outputs [4 first, 4 (first + Q)) of a panel w.
template <int R, int Q, typename Next>
void MultiplyPart(const Inputs& from, const float* w, int first, Next& ahead,
                  float (&out)[R][kPanelWidth]) {
  const auto [x, stride, depth] = from;
  Tile<R, Q> tile;
  w += first * kQuad;
  const int64_t whole = depth - depth % kQuad;
  for (int64_t k = 0; k < whole; k += kQuad, w += kQuad * kPanelWidth) {
    float32x4_t inputs[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) inputs[r] = vld1q_f32(x + r * stride + k);
    if constexpr (R > 3) ahead.Fetch();
    AddRow<0>(inputs, w, tile);
    AddRow<1>(inputs, w + kPanelWidth, tile);
    AddRow<2>(inputs, w + 2 * kPanelWidth, tile);
    AddRow<3>(inputs, w + 3 * kPanelWidth, tile);
  }
  for (int64_t k = whole; k < depth; ++k, w += kPanelWidth) {
    float32x4_t inputs[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) inputs[r] = vdupq_n_f32(x[r * stride + k]);
    AddRow<0>(inputs, w, tile);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) vst1q_f32(&out[r][(first + q) * kQuad], tile.sum[q][r]);
  }
}

template <int R, typename Next>
void MultiplyRows(const Inputs& from, const float* w, Next ahead, float (&out)[R][kPanelWidth]) {
  // Few rows leave registers for a whole panel.
  constexpr int kQuads = R <= 3 ? kPanelQuads : kPanelQuads / 2;
  for (int q = 0; q < kPanelQuads; q += kQuads) MultiplyPart<R, kQuads>(from, w, q, ahead, out);
}

struct RowsF32 {
  template <int R>
  static void Run(const GemmTask& task, int64_t row, int64_t panel) {
    const int64_t panel_bytes = task.depth * kPanelWidth * 4;
    const char* const next = static_cast<const char*>(task.panels) + (panel + 1) * panel_bytes;
    const Ahead ahead = {.from = next + panel_bytes * row / task.num_rows,
                         .num_bytes = kQuad * kPanelWidth * 4 / 2 * R / task.num_rows};
    const Inputs from = {.x = static_cast<const float*>(task.x) + row * task.x_stride,
                         .stride = task.x_stride,
                         .depth = task.depth};
    const float* const w =
        static_cast<const float*>(task.panels) + panel * task.depth * kPanelWidth;
    float sums[R][kPanelWidth];
    MultiplyRows(from, w, ahead, sums);
    FinishNeonRows(task, row, R, panel, sums);
  }
};

// Sixteen pairs of bf16 as floats.
struct Pairs {
  float even[kStepPairs];
  float odd[kStepPairs];

  void Load(const uint16_t* from) {
    Neon::Vec evens;
    Neon::Vec odds;
    Neon::LoadPairs(from, evens, odds);
    Neon::Store(even, evens);
    Neon::Store(odd, odds);
  }
};

// The even and the odd inputs of one step are chains of their own.
template <int R, int Q>
struct PairTile {
  Tile<R, Q> even;
  Tile<R, Q> odd;

  template <int Lane>
  void AddPair(const float32x4_t (&evens)[R], const float32x4_t (&odds)[R], const uint16_t* w) {
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      const uint32x4_t weights = vreinterpretq_u32_u16(vld1q_u16(w + q * 2 * kQuad));
      even.template Add<Lane>(q, evens, Neon::EvenPart(weights));
      odd.template Add<Lane>(q, odds, Neon::OddPart(weights));
    }
  }
};

// Adds a step's products to outputs [4 first, 4 (first + Q)) of a panel.
template <int R, int Q>
void AddStep(const Pairs (&x)[R], const uint16_t* w, int first, float (&sums)[R][kPanelWidth]) {
  constexpr int kHalfQuads = kPanelQuads / 2;
  constexpr int64_t kPairStride = 2 * kLanes;
  w += first / kHalfQuads * kHalfStep + first % kHalfQuads * 2 * kQuad;
  PairTile<R, Q> tile;
  for (int64_t pair = 0; pair < kStepPairs; pair += kQuad, w += kQuad * kPairStride) {
    float32x4_t evens[R];
    float32x4_t odds[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      evens[r] = vld1q_f32(x[r].even + pair);
      odds[r] = vld1q_f32(x[r].odd + pair);
    }
    tile.template AddPair<0>(evens, odds, w);
    tile.template AddPair<1>(evens, odds, w + kPairStride);
    tile.template AddPair<2>(evens, odds, w + 2 * kPairStride);
    tile.template AddPair<3>(evens, odds, w + 3 * kPairStride);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      float* const sum = &sums[r][(first + q) * kQuad];
      const float32x4_t both = vaddq_f32(tile.even.sum[q][r], tile.odd.sum[q][r]);
      vst1q_f32(sum, vaddq_f32(vld1q_f32(sum), both));
    }
  }
}

struct FewRowsBf16 {
  template <int R>
  static void Run(const GemmTask& task, int64_t row, int64_t panel) {
    constexpr int kQuads = R <= 3 ? kPanelQuads / 2 : kPanelQuads / 4;
    const uint16_t* const x = static_cast<const uint16_t*>(task.x) + row * task.x_stride;
    const uint16_t* w =
        static_cast<const uint16_t*>(task.panels) + panel * task.depth * kPanelWidth;
    float sums[R][kPanelWidth] = {};
    for (int64_t k = 0; k < task.depth; k += kDepthStep, w += 2 * kHalfStep) {
      Pairs inputs[R];
      for (int r = 0; r < R; ++r) inputs[r].Load(x + r * task.x_stride + k);
      for (int q = 0; q < kPanelQuads; q += kQuads) AddStep<R, kQuads>(inputs, w, q, sums);
    }
    FinishNeonRows(task, row, R, panel, sums);
  }
};

// Weights of one step as floats.
struct StepWeights {
  float even[kStepPairs][kPanelWidth];
  float odd[kStepPairs][kPanelWidth];

  void Load(const uint16_t* from) {
    for (int64_t i = 0; i < kPanelWidth; i += kLanes) {
      for (int64_t pair = 0; pair < kStepPairs; ++pair, from += 2 * kLanes) {
        Neon::Vec evens;
        Neon::Vec odds;
        Neon::LoadPairs(from, evens, odds);
        Neon::Store(even[pair] + i, evens);
        Neon::Store(odd[pair] + i, odds);
      }
    }
  }
};

// Sums of some rows of a panel, to which weights are added step by step.
struct ManyRowsBf16 {
  static constexpr int kTileRows = 4;
  static constexpr int64_t kMostRows = 8 * kTileRows;
  float sums[kMostRows][kPanelWidth];
  StepWeights weights;

  template <int R>
  void Add(const GemmTask& task, const uint16_t* x, float (*to)[kPanelWidth]) {
    Pairs inputs[R];
    for (int r = 0; r < R; ++r) inputs[r].Load(x + r * task.x_stride);
    constexpr int64_t kStride = sizeof(Pairs) / sizeof(float);
    float evens[R][kPanelWidth];
    float odds[R][kPanelWidth];
    MultiplyRows({inputs[0].even, kStride, kStepPairs}, weights.even[0], NothingAhead(), evens);
    MultiplyRows({inputs[0].odd, kStride, kStepPairs}, weights.odd[0], NothingAhead(), odds);
    for (int r = 0; r < R; ++r) {
      for (int i = 0; i < kPanelWidth; i += kQuad) {
        const float32x4_t both = vaddq_f32(vld1q_f32(&evens[r][i]), vld1q_f32(&odds[r][i]));
        vst1q_f32(&to[r][i], vaddq_f32(vld1q_f32(&to[r][i]), both));
      }
    }
  }

  void Run(const GemmTask& task, int64_t row, int64_t num_rows, int64_t panel) {
    const uint16_t* x = static_cast<const uint16_t*>(task.x) + row * task.x_stride;
    const uint16_t* w =
        static_cast<const uint16_t*>(task.panels) + panel * task.depth * kPanelWidth;
    // Whole tiles: GemmTask permits to read the rows that the last one adds.
    const int64_t whole = (num_rows + kTileRows - 1) / kTileRows * kTileRows;
    for (int64_t r = 0; r < whole; ++r) std::fill_n(sums[r], kPanelWidth, 0.0F);
    for (int64_t k = 0; k < task.depth; k += kDepthStep, w += 2 * kHalfStep, x += kDepthStep) {
      weights.Load(w);
      for (int64_t r = 0; r < whole; r += kTileRows) {
        Add<kTileRows>(task, x + r * task.x_stride, sums + r);
      }
    }
    FinishNeonRows(task, row, num_rows, panel, sums);
  }
};

// `num_rows` <= R rows of one panel.
template <typename Rows, int R>
void RunRows(const GemmTask& task, int64_t row, int64_t num_rows, int64_t panel) {
  if constexpr (R > 1) {
    if (num_rows < R) return RunRows<Rows, R - 1>(task, row, num_rows, panel);
  }
  Rows::template Run<R>(task, row, panel);
}

// Calls body(first, count) for parts of at most `most` and nearly equal size.
template <typename Body>
void ForParts(int64_t n, int64_t most, const Body& body) {
  const int64_t num_parts = (n + most - 1) / most;
  for (int64_t part = 0; part < num_parts; ++part) {
    const int64_t begin = n * part / num_parts;
    body(begin, n * (part + 1) / num_parts - begin);
  }
}

}  // namespace

void FinishNeonRows(const GemmTask& task, int64_t row, int64_t num_rows, int64_t panel,
                    const float (*sums)[kPanelWidth]) {
  for (int64_t r = 0; r < num_rows; ++r) {
    FinishPanel<Neon>(task, row + r, panel, Neon::Load(sums[r]), Neon::Load(sums[r] + kLanes));
  }
}

void GemmNeonF32(const GemmTask& task) {
  // The sums of five rows, their inputs and a weight fill 26 of 32 registers.
  constexpr int kMostRows = 5;
  for (int64_t panel = 0; panel < task.num_panels; ++panel) {
    ForParts(task.num_rows, kMostRows, [&](int64_t row, int64_t num_rows) {
      RunRows<RowsF32, kMostRows>(task, row, num_rows, panel);
    });
  }
}

void GemmNeonBf16(const GemmTask& task) {
  // Weights are converted for each tile of few rows, and once for many.
  constexpr int kFewRows = 4;
  for (int64_t panel = 0; panel < task.num_panels; ++panel) {
    if (task.num_rows < 8) {
      ForParts(task.num_rows, kFewRows, [&](int64_t row, int64_t num_rows) {
        RunRows<FewRowsBf16, kFewRows>(task, row, num_rows, panel);
      });
      continue;
    }
    ManyRowsBf16 many;
    for (int64_t row = 0; row < task.num_rows; row += ManyRowsBf16::kMostRows) {
      const int64_t left = task.num_rows - row;
      many.Run(task, row, left < ManyRowsBf16::kMostRows ? left : ManyRowsBf16::kMostRows, panel);
    }
  }
}

}  // namespace pace
#endif
