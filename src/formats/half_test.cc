// Every half there is, against references that work on values, not on bits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/float_encoding.h"

namespace pace {
namespace {

constexpr uint32_t kNumHalves = 1u << 16;

// The value of a small float by its definition, in double.
double Value(uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t exponent = (bits >> fraction_bits) & ((1u << exponent_bits) - 1);
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const double sign = (bits >> 15) != 0 ? -1.0 : 1.0;
  if (exponent == (1u << exponent_bits) - 1) {
    return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1u << fraction_bits) + fraction,
                           static_cast<int>(exponent) - bias - fraction_bits);
}

bool SameReal(double left, double right) {
  if (std::isnan(left) || std::isnan(right)) return std::isnan(left) && std::isnan(right);
  return left == right && std::signbit(left) == std::signbit(right);
}

struct Format {
  int exponent_bits;
  int fraction_bits;
  float (*to_float)(uint16_t);
  uint16_t (*from_float)(float);
};

constexpr Format kF16 = {5, 10, F16ToFloat, FloatToF16};
constexpr Format kBF16 = {8, 7, BF16ToFloat, FloatToBF16};

void CheckEveryHalfToFloat(const Format& format) {
  for (uint32_t bits = 0; bits < kNumHalves; ++bits) {
    const double expected = Value(bits, format.exponent_bits, format.fraction_bits);
    const float value = format.to_float(static_cast<uint16_t>(bits));
    ASSERT_TRUE(SameReal(value, expected)) << bits;
    ASSERT_EQ(std::signbit(value), (bits >> 15) != 0) << bits;
  }
}

void CheckEveryHalfComesBack(const Format& format) {
  const auto quiet = static_cast<uint32_t>(1 << (format.fraction_bits - 1));
  for (uint32_t bits = 0; bits < kNumHalves; ++bits) {
    const float value = format.to_float(static_cast<uint16_t>(bits));
    const uint32_t expected = std::isnan(value) ? bits | quiet : bits;
    ASSERT_EQ(format.from_float(value), expected) << bits;
  }
}

// Between two neighbours: below the middle the lower, above it the upper, at it
// the even one. Together with the halves themselves this fixes the rounding of
// every float, because rounding is monotonic.
void CheckRoundingBetweenNeighbours(const Format& format) {
  const uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.fraction_bits;
  for (uint32_t sign : {0u, 0x8000u}) {
    for (uint32_t bits = 0; bits < infinity; ++bits) {
      const double lower = Value(bits, format.exponent_bits, format.fraction_bits);
      // The neighbour of the largest is where the next one would be.
      const double upper =
          bits + 1 == infinity
              ? lower + (lower - Value(bits - 1, format.exponent_bits, format.fraction_bits))
              : Value(bits + 1, format.exponent_bits, format.fraction_bits);
      const auto middle = static_cast<float>((lower + upper) / 2);
      const float flip = sign != 0 ? -1.0f : 1.0f;
      const auto round = [&](float value) { return uint32_t{format.from_float(value * flip)}; };
      const uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
      ASSERT_EQ(round(middle), sign | even) << bits;
      ASSERT_EQ(round(std::nextafter(middle, 0.0f)), sign | bits) << bits;
      ASSERT_EQ(round(std::nextafter(middle, std::numeric_limits<float>::infinity())),
                sign | (bits + 1))
          << bits;
    }
  }
}

TEST(HalfTest, EveryF16HasItsValue) {
  CheckEveryHalfToFloat(kF16);
}
TEST(HalfTest, EveryBF16HasItsValue) {
  CheckEveryHalfToFloat(kBF16);
}
TEST(HalfTest, EveryF16ComesBackFromFloat) {
  CheckEveryHalfComesBack(kF16);
}
TEST(HalfTest, EveryBF16ComesBackFromFloat) {
  CheckEveryHalfComesBack(kBF16);
}
TEST(HalfTest, F16RoundsToNearestTiesToEven) {
  CheckRoundingBetweenNeighbours(kF16);
}
TEST(HalfTest, BF16RoundsToNearestTiesToEven) {
  CheckRoundingBetweenNeighbours(kBF16);
}

TEST(HalfTest, FloatsBeyondTheRangeBecomeInfinityOrZero) {
  EXPECT_EQ(FloatToF16(65519.996f), 0x7BFF);
  EXPECT_EQ(FloatToF16(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToF16(-1e30f), 0xFC00);
  EXPECT_EQ(FloatToF16(1e-30f), 0);
  EXPECT_EQ(FloatToF16(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(FloatToBF16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(FloatToBF16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(HalfTest, ANaNWhosePayloadDoesNotFitStaysNaN) {
  EXPECT_EQ(FloatToF16(std::bit_cast<float>(0x7F800001u)), 0x7E00);
  EXPECT_EQ(FloatToBF16(std::bit_cast<float>(0xFF800001u)), 0xFFC0);
}

}  // namespace
}  // namespace pace
