// Training kernels: against double arithmetic, level against level, and panels
// by the products that they give.
#include "model/cpu/gradient/training_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>

#include "formats/float_encoding.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/random_floats.h"

namespace pace {
namespace {

class TrainingKernelsTest : public testing::TestWithParam<Isa> {
 protected:
  const TrainingKernels& kernels() const { return TrainingKernelsOf(GetParam()); }
  const TrainingKernels& portable() const { return TrainingKernelsOf(Isa::kPortable); }
};

std::string NameOfIsa(const testing::TestParamInfo<Isa>& info) {
  return std::string(IsaName(info.param));
}
INSTANTIATE_TEST_SUITE_P(Levels, TrainingKernelsTest, testing::ValuesIn(IsaLevels()), NameOfIsa);

// Sizes around the width of a vector.
const std::vector<int64_t> kSizes = {1, 2, 15, 16, 17, 33, 100};
constexpr int64_t kRows = 3;
constexpr float kNormEpsilon = 1e-5F;

std::vector<uint16_t> RoundedRows(const std::vector<float>& values) {
  std::vector<uint16_t> rounded;
  for (const float value : values) rounded.push_back(FloatToBF16(value));
  return rounded;
}

double SizeOf(std::span<const float> row) {
  double squares = 0;
  for (const float value : row) squares += double{value} * value;
  return std::sqrt(squares / static_cast<double>(row.size()) + kNormEpsilon);
}

TEST_P(TrainingKernelsTest, NormsAndTheirGradientsAreRight) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = RandomFloats(kRows * n, 1);
    const std::vector<float> g = RandomFloats(kRows * n, 2);
    const std::vector<float> weight = RandomFloats(n, 3);
    std::vector<float> y(x.size());
    std::vector<float> dx(x.size());
    std::vector<float> dw(weight.size(), 0.5F);  // added to
    kernels().f32.norm(x.data(), weight.data(), kNormEpsilon, kRows, n, y.data());
    kernels().f32.norm_gradient(g.data(), x.data(), weight.data(), kNormEpsilon, kRows, n,
                                dx.data(), dw.data());
    std::vector<double> expected_dw(weight.size(), 0.5);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto at = static_cast<size_t>(row * n);
      const double size = SizeOf({x.data() + at, static_cast<size_t>(n)});
      double mean = 0;
      for (size_t i = 0; i < weight.size(); ++i) {
        mean += double{g[at + i]} * weight[i] * x[at + i] / static_cast<double>(n);
      }
      for (size_t i = 0; i < weight.size(); ++i) {
        EXPECT_NEAR(y[at + i], weight[i] * x[at + i] / size, 1e-5);
        const double exact =
            (double{g[at + i]} * weight[i] - x[at + i] * mean / (size * size)) / size;
        EXPECT_NEAR(dx[at + i], exact, 1e-5 * (1 + std::abs(exact) / size)) << n;
        expected_dw[i] += double{g[at + i]} * x[at + i] / size;
      }
    }
    for (size_t i = 0; i < weight.size(); ++i) EXPECT_NEAR(dw[i], expected_dw[i], 1e-5);
  }
}

TEST_P(TrainingKernelsTest, GatesAndTheirGradientsAreRight) {
  for (const int64_t n : kSizes) {
    const std::vector<float> gate_up = RandomFloats(kRows * 2 * n, 4, 3.0);
    const std::vector<float> g = RandomFloats(kRows * n, 5);
    std::vector<float> y(g.size());
    std::vector<float> d(gate_up.size());
    kernels().f32.gated(gate_up.data(), kRows, n, y.data());
    kernels().f32.gated_gradient(g.data(), gate_up.data(), kRows, n, d.data());
    for (int64_t i = 0; i < kRows * n; ++i) {
      const auto at = static_cast<size_t>(i / n * 2 * n + i % n);
      const auto up_at = at + static_cast<size_t>(n);
      const double gate = gate_up[at];
      const double up = gate_up[up_at];
      const double share = 1 / (1 + std::exp(-gate));
      const double from = g[static_cast<size_t>(i)];
      EXPECT_NEAR(y[static_cast<size_t>(i)], gate * share * up, 1e-5 * (1 + std::abs(gate * up)));
      EXPECT_NEAR(d[at], from * up * share * (1 + gate * (1 - share)), 1e-5 * (1 + std::abs(up)));
      EXPECT_NEAR(d[up_at], from * gate * share, 1e-5 * (1 + std::abs(gate)));
    }
  }
}

TEST_P(TrainingKernelsTest, LogitsAndTheirGradientsAreRight) {
  for (const int64_t n : kSizes) {
    const std::vector<float> logits = RandomFloats(n, 6, 2.0);
    const TrainingKernels::Moments moments = kernels().exp_moments(logits.data(), n, 0.3F, 0.8F);
    double sum = 0;
    double weighted = 0;
    for (const float logit : logits) {
      sum += std::exp((logit - 0.3) * 0.8);
      weighted += std::exp((logit - 0.3) * 0.8) * logit;
    }
    EXPECT_NEAR(moments.sum, sum, 1e-5 * sum);
    EXPECT_NEAR(moments.weighted, weighted, 1e-5 * (sum + std::abs(weighted)));
    std::vector<float> d(logits.size());
    kernels().f32.logit_gradient(logits.data(), n, 0.8F, 1.5F, 0.7F, -0.2F, d.data());
    for (size_t i = 0; i < d.size(); ++i) {
      const double share = std::exp(0.8 * logits[i] - 1.5);
      EXPECT_NEAR(d[i], share * (0.7 - 0.2 * logits[i]), 1e-5 * (1 + share * 2));
    }
  }
}

TEST_P(TrainingKernelsTest, ScoreGradientsAndDotsAreRight) {
  for (const int64_t n : kSizes) {
    const std::vector<float> scores = RandomFloats(n, 7, 2.0);
    const std::vector<float> before = RandomFloats(n, 8);
    std::vector<float> s = scores;
    std::vector<float> dp = before;
    kernels().score_gradient(s.data(), dp.data(), n, 0.5F, 1.2F, 0.4F);
    double dot = 0;
    for (size_t i = 0; i < s.size(); ++i) {
      const double share = std::exp(0.5 * scores[i] - 1.2);
      EXPECT_NEAR(s[i], share, 1e-5 * (1 + share));
      EXPECT_NEAR(dp[i], 0.5 * share * (before[i] - 0.4), 1e-5 * (1 + share));
      dot += double{scores[i]} * before[i];
    }
    EXPECT_NEAR(kernels().dot(scores.data(), before.data(), n), dot, 1e-4);
  }
}

// Rows in bf16 are those in float32, rounded once.
TEST_P(TrainingKernelsTest, Bf16IsFloat32Rounded) {
  for (const int64_t n : kSizes) {
    const std::vector<uint16_t> gate_up = RoundedRows(RandomFloats(kRows * 2 * n, 9));
    const std::vector<uint16_t> g = RoundedRows(RandomFloats(kRows * n, 10));
    std::vector<float> wide;
    for (const uint16_t value : gate_up) wide.push_back(BF16ToFloat(value));
    std::vector<float> wide_g;
    for (const uint16_t value : g) wide_g.push_back(BF16ToFloat(value));
    const std::vector<float> weight = RandomFloats(n, 11);

    std::vector<uint16_t> y(g.size());
    std::vector<float> wide_y(g.size());
    kernels().bf16.gated(gate_up.data(), kRows, n, y.data());
    kernels().f32.gated(wide.data(), kRows, n, wide_y.data());
    EXPECT_EQ(y, RoundedRows(wide_y));
    std::vector<uint16_t> d(gate_up.size());
    std::vector<float> wide_d(gate_up.size());
    kernels().bf16.gated_gradient(g.data(), gate_up.data(), kRows, n, d.data());
    kernels().f32.gated_gradient(wide_g.data(), wide.data(), kRows, n, wide_d.data());
    EXPECT_EQ(d, RoundedRows(wide_d));
    kernels().bf16.norm(gate_up.data(), weight.data(), kNormEpsilon, kRows, n, y.data());
    kernels().f32.norm(wide.data(), weight.data(), kNormEpsilon, kRows, n, wide_y.data());
    EXPECT_EQ(y, RoundedRows(wide_y));
    std::vector<float> dw(weight.size());
    std::vector<float> wide_dw(weight.size());
    kernels().bf16.norm_gradient(g.data(), gate_up.data(), weight.data(), kNormEpsilon, kRows, n,
                                 y.data(), dw.data());
    kernels().f32.norm_gradient(wide_g.data(), wide.data(), weight.data(), kNormEpsilon, kRows, n,
                                wide_y.data(), wide_dw.data());
    EXPECT_EQ(y, RoundedRows(wide_y));
    EXPECT_EQ(dw, wide_dw);
  }
}

TEST_P(TrainingKernelsTest, LevelsAgreeToTheBit) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = RandomFloats(kRows * 2 * n, 12);
    const std::vector<float> g = RandomFloats(kRows * 2 * n, 13);
    const std::vector<float> weight = RandomFloats(n, 14);
    const auto results = [&](const TrainingKernels& table) {
      std::vector<float> all(static_cast<size_t>(8 * kRows * n + n));
      float* at = all.data();
      table.f32.norm(x.data(), weight.data(), kNormEpsilon, kRows, n, at);
      table.f32.norm_gradient(g.data(), x.data(), weight.data(), kNormEpsilon, kRows, n,
                              at + kRows * n, at + 8 * kRows * n);
      table.f32.gated(x.data(), kRows, n, at + 2 * kRows * n);
      table.f32.gated_gradient(g.data(), x.data(), kRows, n, at + 3 * kRows * n);
      table.f32.logit_gradient(x.data(), n, 0.8F, 1.5F, 0.7F, -0.2F, at + 5 * kRows * n);
      const TrainingKernels::Moments moments = table.exp_moments(x.data(), n, 0.1F, 0.9F);
      all.push_back(moments.sum);
      all.push_back(moments.weighted);
      all.push_back(table.dot(x.data(), g.data(), n));
      return all;
    };
    EXPECT_EQ(BitsOf(results(kernels())), BitsOf(results(portable()))) << n;
  }
}

// Rows of one matrix as outputs and as inputs: x panels = x rows^T and x rows.
template <typename T>
void ExpectPanelsToMultiply(Isa isa, int64_t num_rows, int64_t width) {
  const std::vector<float> wide = RandomFloats(num_rows * width, 15);
  const auto element = [](float value) {
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else {
      return FloatToBF16(value);
    }
  };
  std::vector<T> rows;
  for (const float value : wide) rows.push_back(element(value));
  const auto up = [](int64_t n) { return (n + 31) / 32 * 32; };
  const auto depth = [&](int64_t n) { return std::is_same_v<T, float> ? n : up(n); };
  for (const bool as_outputs : {true, false}) {
    const int64_t inputs = as_outputs ? width : num_rows;
    const int64_t outputs = as_outputs ? num_rows : width;
    std::vector<T> panels(static_cast<size_t>(depth(inputs) * up(outputs)), element(99.0F));
    const TrainingKernels::Of<T>& table = TrainingKernelsOf(isa).of<T>();
    (as_outputs ? table.pack_outputs : table.pack_inputs)(rows.data(), width, num_rows, width,
                                                          panels.data());
    // A left side that picks out input k.
    const int64_t x_stride = depth(inputs);
    std::vector<T> x(static_cast<size_t>(up(inputs) * x_stride), element(0.0F));
    for (int64_t k = 0; k < inputs; ++k) x[static_cast<size_t>(k * x_stride + k)] = element(1.0F);
    std::vector<float> out(static_cast<size_t>(inputs * up(outputs)));
    const GemmTask task{.x = x.data(),
                        .x_stride = x_stride,
                        .num_rows = inputs,
                        .panels = panels.data(),
                        .num_panels = up(outputs) / 32,
                        .depth = depth(inputs),
                        .out = out.data(),
                        .out_stride = up(outputs)};
    const Kernels& kernels = KernelsOf(isa);
    (std::is_same_v<T, float> ? kernels.gemm_f32 : kernels.gemm_bf16)(task);
    for (int64_t k = 0; k < inputs; ++k) {
      for (int64_t i = 0; i < up(outputs); ++i) {
        const int64_t at = as_outputs ? i * width + k : k * width + i;
        const float expected =
            i < outputs ? BF16ToFloat(FloatToBF16(wide[static_cast<size_t>(at)])) : 0.0F;
        const float exact =
            i < outputs && std::is_same_v<T, float> ? wide[static_cast<size_t>(at)] : expected;
        ASSERT_EQ(out[static_cast<size_t>(k * up(outputs) + i)], exact) << k << " " << i;
      }
    }
  }
}

TEST_P(TrainingKernelsTest, PanelsGiveTheProductsOfTheirRows) {
  for (const int64_t num_rows : {1, 31, 32, 33, 65}) {
    for (const int64_t width : {1, 2, 31, 32, 47, 64}) {
      ExpectPanelsToMultiply<float>(GetParam(), num_rows, width);
      ExpectPanelsToMultiply<uint16_t>(GetParam(), num_rows, width);
    }
  }
}

TEST_P(TrainingKernelsTest, ColumnsAreRowsTransposed) {
  constexpr size_t kStride = 50;
  constexpr size_t kOutStride = 40;
  constexpr size_t kNumRows = 32;
  constexpr size_t kWidth = 48;
  const std::vector<float> rows = RandomFloats(kNumRows * kStride, 16);
  std::vector<float> out(kWidth * kOutStride);
  kernels().f32.transpose(rows.data(), kStride, kNumRows, kWidth, out.data(), kOutStride);
  const std::vector<uint16_t> short_rows = RoundedRows(rows);
  std::vector<uint16_t> short_out(kWidth * kOutStride);
  kernels().bf16.transpose(short_rows.data(), kStride, kNumRows, kWidth, short_out.data(),
                           kOutStride);
  for (size_t i = 0; i < kNumRows; ++i) {
    for (size_t j = 0; j < kWidth; ++j) {
      ASSERT_EQ(out[j * kOutStride + i], rows[i * kStride + j]);
      ASSERT_EQ(short_out[j * kOutStride + i], short_rows[i * kStride + j]);
    }
  }
}

}  // namespace
}  // namespace pace
