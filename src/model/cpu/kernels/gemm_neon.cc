// GEMM on AArch64 without bf16 instructions, with the bits of the portable
// level: the sums of a tile stay in registers, and an input is a lane of one.
#include "model/cpu/kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

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

  void Load(const float (*from)[kPanelWidth], int first) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q) sum[q][r] = vld1q_f32(&from[r][(first + q) * kQuad]);
    }
  }
  void Store(float (*to)[kPanelWidth], int first) const {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q) vst1q_f32(&to[r][(first + q) * kQuad], sum[q][r]);
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
template <int Lines>  // prefetches per four inputs
struct Ahead {
  const char* from = nullptr;
  int64_t num_bytes = 0;  // per four inputs

  void Fetch() {
#pragma GCC unroll 4
    for (int i = 0; i < Lines; ++i) __builtin_prefetch(from + i * num_bytes / Lines, 0, 2);
    from += num_bytes;
  }
};

struct NothingAhead {
  void Fetch() const {}
};

// Outputs [4 first, 4 (first + Q)) of a panel w, added to the sums of earlier inputs.
template <int R, int Q, typename Next>
void MultiplyPart(const Inputs& from, const float* w, int first, Next& ahead, bool has_sums,
                  float (*sums)[kPanelWidth]) {
  const auto [x, stride, depth] = from;
  Tile<R, Q> tile;
  if (has_sums) tile.Load(sums, first);
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
  tile.Store(sums, first);
}

template <int R, typename Next>
void MultiplyRows(const Inputs& from, const float* w, Next ahead, float (&out)[R][kPanelWidth]) {
  // Few rows leave registers for a whole panel.
  constexpr int kQuads = R <= 3 ? kPanelQuads : kPanelQuads / 2;
  for (int q = 0; q < kPanelQuads; q += kQuads) {
    MultiplyPart<R, kQuads>(from, w, q, ahead, /*has_sums=*/false, out);
  }
}

// Calls body with `num_rows` <= R as a constant.
template <int R, typename Body>
void WithRows(int64_t num_rows, const Body& body) {
  if constexpr (R > 1) {
    if (num_rows < R) return WithRows<R - 1>(num_rows, body);
  }
  body(std::integral_constant<int, R>());
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

const float* PanelF32(const GemmTask& task, int64_t panel) {
  return static_cast<const float*>(task.panels) + panel * task.depth * kPanelWidth;
}

// At most kMostRows rows of one panel. Half the panel's width, at a depth that stays in the
// first-level cache, is multiplied by all of them before the next part: a sum continues where
// it was left, so the bits are those of one chain.
class RowsF32 {
 public:
  static constexpr int64_t kMostRows = 64;

  RowsF32(const GemmTask& task, int64_t row, int64_t num_rows, int64_t panel)
      : task_(task), row_(row), num_rows_(num_rows), panel_(panel) {}

  void Run() {
    // Tiles of at most three rows leave registers for a whole panel.
    if (num_rows_ <= 3 || num_rows_ == 6) {
      Part<kPanelQuads>(0, 0, task_.depth);
    } else {
      constexpr int64_t kMostDepth = 384;
      const int64_t num_parts = (task_.depth + kMostDepth - 1) / kMostDepth;
      const int64_t step = (task_.depth / num_parts + kQuad - 1) / kQuad * kQuad;
      for (int first = 0; first < kPanelQuads; first += kHalf) {
        for (int64_t k = 0; k < task_.depth; k += step) {
          Part<kHalf>(first, k, std::min(step, task_.depth - k));
        }
      }
    }
    FinishNeonRows(task_, row_, num_rows_, panel_, sums_);
  }

 private:
  static constexpr int kHalf = kPanelQuads / 2;
  // Sums of five rows, their inputs and a weight fill 26 of 32 registers.
  static constexpr int kTileRows = 5;

  // Inputs [k, k + depth), and Q registers of outputs.
  template <int Q>
  void Part(int first, int64_t k, int64_t depth) {
    ForParts(num_rows_, kTileRows, [&](int64_t row, int64_t count) {
      WithRows<kTileRows>(count, [&](auto rows) {
        constexpr int kRows = decltype(rows)::value;
        const Inputs from = {
            .x = static_cast<const float*>(task_.x) + (row_ + row) * task_.x_stride + k,
            .stride = task_.x_stride,
            .depth = depth};
        const auto multiply = [&](auto ahead) {
          MultiplyPart<kRows, Q>(from, PanelF32(task_, panel_) + k * kPanelWidth, first, ahead,
                                 /*has_sums=*/k > 0, sums_ + row);
        };
        // A tile's part of the next panel: at most a line per four inputs if rows are many.
        if (num_rows_ >= 4 * kTileRows) {
          multiply(Next<1>(count, depth));
        } else {
          multiply(Next<4>(count, depth));
        }
      });
    });
  }

  // What these rows fetch of the next panel while they are multiplied by half of this one.
  template <int Lines>
  Ahead<Lines> Next(int64_t rows, int64_t depth) {
    const int64_t panel_bytes = task_.depth * kPanelWidth * 4;
    const char* const next = static_cast<const char*>(task_.panels) + (panel_ + 1) * panel_bytes;
    const int64_t done = done_;
    done_ += rows * depth;
    return {.from = next + panel_bytes * done / (2 * num_rows_ * task_.depth),
            .num_bytes = kQuad * kPanelWidth * 4 / 2 * rows / num_rows_};
  }

  const GemmTask& task_;
  const int64_t row_;
  const int64_t num_rows_;
  const int64_t panel_;
  int64_t done_ = 0;  // rows times depth, of the two halves
  float sums_[kMostRows][kPanelWidth];
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

}  // namespace

void FinishNeonRows(const GemmTask& task, int64_t row, int64_t num_rows, int64_t panel,
                    const float (*sums)[kPanelWidth]) {
  for (int64_t r = 0; r < num_rows; ++r) {
    FinishPanel<Neon>(task, row + r, panel, Neon::Load(sums[r]), Neon::Load(sums[r] + kLanes));
  }
}

void GemmNeonF32(const GemmTask& task) {
  for (int64_t panel = 0; panel < task.num_panels; ++panel) {
    ForParts(task.num_rows, RowsF32::kMostRows,
             [&](int64_t row, int64_t num_rows) { RowsF32(task, row, num_rows, panel).Run(); });
  }
}

void GemmNeonBf16(const GemmTask& task) {
  // Weights are converted for each tile of few rows, and once for many.
  constexpr int kFewRows = 4;
  for (int64_t panel = 0; panel < task.num_panels; ++panel) {
    if (task.num_rows < 8) {
      ForParts(task.num_rows, kFewRows, [&](int64_t row, int64_t num_rows) {
        WithRows<kFewRows>(num_rows, [&](auto rows) {
          FewRowsBf16::Run<decltype(rows)::value>(task, row, panel);
        });
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
