#include "model/quantization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/random.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

// By the definition of the format, from its bits; NaN for the two codes that are.
double ValueOf(int code) {
  const double sign = code >= 128 ? -1 : 1;
  const int exponent = code / 8 % 16;
  const int mantissa = code % 8;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(mantissa, -9);
  return sign * std::ldexp(8 + mantissa, exponent - 10);
}

// The nearest value of the format; of two, the one with the even code.
double NearestOf(double x) {
  int best = 0;
  for (int code = 0; code < 127; ++code) {
    const double distance = std::abs(ValueOf(code) - std::abs(x));
    const double before = std::abs(ValueOf(best) - std::abs(x));
    if (distance < before || (distance == before && code % 2 == 0)) best = code;
  }
  return std::copysign(ValueOf(best), x);
}

TEST(QuantizationTest, ScalesArePowersOfTwoThatFit) {
  EXPECT_EQ(Float8Scale(std::vector<float>{448, -3}), 1.0F);
  EXPECT_EQ(Float8Scale(std::vector<float>{1, -449}), 2.0F);
  EXPECT_EQ(Float8Scale(std::vector<float>{224}), 0.5F);
  EXPECT_EQ(Float8Scale(std::vector<float>{0, 0}), 1.0F);
  EXPECT_EQ(Float8Scale(std::vector<float>{1e-38F}), std::ldexp(1.0F, -100));
  EXPECT_TRUE(std::isnan(Float8Scale(std::vector<float>{1, INFINITY})));
  const CounterRandom random(3, 1);
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto x = static_cast<float>(std::exp(10 * random.Normal(i)));
    const float scale = Float8Scale(std::vector<float>{x / 3, -x});
    int exponent = 0;
    EXPECT_EQ(std::frexp(scale, &exponent), 0.5F);
    EXPECT_LE(x / scale, 448);
    EXPECT_GT(x / scale, 224);
  }
}

TEST(QuantizationTest, ValuesOfTheFormatStay) {
  std::vector<float> row;
  for (int code = 0; code < 256; ++code) {
    if (!std::isnan(ValueOf(code))) row.push_back(static_cast<float>(ValueOf(code)));
  }
  const std::vector<float> before = row;
  RoundToFloat8(row);
  EXPECT_EQ(row, before);
}

TEST(QuantizationTest, RoundsToTheNearestValue) {
  const CounterRandom random(5, 1);
  for (uint64_t run = 0; run < 50; ++run) {
    std::vector<float> row;
    for (uint64_t i = 0; i < 40; ++i) {
      row.push_back(static_cast<float>(random.Normal(100 * run + i) * std::exp2(-double(i))));
    }
    // Ties, in units of the scale that 448 has.
    if (run == 0) row = {448, 17, 19, 1.0625F, 1.1875F, 0x1p-10F, 0x3p-10F, -17, -0x1p-11F};
    const std::vector<float> before = row;
    const double scale = Float8Scale(row);
    RoundToFloat8(row);
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_EQ(row[i], scale * NearestOf(before[i] / scale)) << before[i] << " / " << scale;
    }
  }
}

TEST(QuantizationTest, ARowThatIsNotFiniteBecomesNaN) {
  std::vector<float> row = {1, std::numeric_limits<float>::quiet_NaN(), 2};
  RoundToFloat8(row);
  EXPECT_TRUE(std::ranges::all_of(row, [](float x) { return std::isnan(x); }));
}

TEST(QuantizationTest, MatricesOfTheLayersAreRoundedAndNothingElse) {
  for (const Architecture architecture : {Architecture::kQwen3, Architecture::kQwen3Moe}) {
    const ModelConfig config = TinyModel(architecture);
    const WeightSet weights = RandomWeights(config, 7);
    const WeightSet rounded = RoundedToFloat8(config, weights);
    int num_rounded = 0;
    for (const Parameter& parameter : ParametersOf(config)) {
      const std::string& name = parameter.name;
      const bool is_matrix = name.find("_proj.weight") != std::string::npos;
      EXPECT_EQ(weights.Floats(name) != rounded.Floats(name), is_matrix) << name;
      num_rounded += is_matrix ? 1 : 0;
    }
    const auto experts = config.moe ? config.moe->num_experts : 1;
    EXPECT_EQ(num_rounded, config.num_layers * (4 + 3 * experts));
  }
}

}  // namespace
}  // namespace pace
