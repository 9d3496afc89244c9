// Kernels along a row: against double arithmetic, and level against level.
#include "model/cpu/kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "formats/float_encoding.h"
#include "model/cpu/kernels/isa.h"
#include "model/cpu/random_floats.h"

namespace pace {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class KernelsTest : public testing::TestWithParam<Isa> {
 protected:
  const Kernels& kernels() const { return KernelsOf(GetParam()); }
};

std::string NameOfIsa(const testing::TestParamInfo<Isa>& info) {
  return std::string(IsaName(info.param));
}
INSTANTIATE_TEST_SUITE_P(Levels, KernelsTest, testing::ValuesIn(IsaLevels()), NameOfIsa);

// Sizes around the width of a vector.
const std::vector<int64_t> kSizes = {1, 2, 15, 16, 17, 31, 33, 100};

std::vector<float> Exponentials(const Kernels& kernels, const std::vector<float>& x) {
  std::vector<float> terms(x.size());
  kernels.exp_sum(x.data(), static_cast<int64_t>(x.size()), 0.0F, 1.0F, terms.data());
  return terms;
}

TEST_P(KernelsTest, ExponentialsAreRightToTwoUnits) {
  std::vector<float> x;
  for (int i = -9285; i < 9391; ++i) x.push_back(static_cast<float>(i) * 0.00937F);
  const std::vector<float> terms = Exponentials(kernels(), x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    const auto nearest = static_cast<float>(exact);
    const double unit = std::nextafter(nearest, kInfinity) - nearest;
    ASSERT_LT(std::abs(terms[i] - exact), 2 * unit) << x[i];
  }
}

TEST_P(KernelsTest, ExponentialsAreDefinedEverywhere) {
  const std::vector<float> terms =
      Exponentials(kernels(), {0.0F, -0.0F, -88.0F, -1e30F, -kInfinity, 200.0F, kInfinity, kNaN});
  EXPECT_EQ(terms[0], 1.0F);
  EXPECT_EQ(terms[1], 1.0F);
  EXPECT_EQ(terms[2], 0.0F);
  EXPECT_EQ(terms[3], 0.0F);
  EXPECT_EQ(terms[4], 0.0F);
  EXPECT_GT(terms[5], 1e38F);
  EXPECT_GT(terms[6], 1e38F);
  EXPECT_TRUE(std::isnan(terms[7]));
}

TEST_P(KernelsTest, SumsMaximaAndSearchesCoverEverySize) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = RandomFloats(n, 3);
    EXPECT_EQ(kernels().max_of(x.data(), n), *std::max_element(x.begin(), x.end()));
    double exact = 0;
    for (const float value : x) exact += std::exp((value - 0.5) * 0.7);
    EXPECT_NEAR(kernels().exp_sum(x.data(), n, 0.5F, 0.7F, nullptr), exact, 1e-6 * exact);
    const float limit = x[static_cast<size_t>(n / 2)];
    double sum = 0;
    std::vector<int32_t> expected;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] < limit) continue;
      sum += x[i];
      expected.push_back(static_cast<int32_t>(i));
    }
    EXPECT_NEAR(kernels().sum_at_least(x.data(), n, limit), sum, 1e-5);
    std::vector<int32_t> found(x.size());
    found.resize(static_cast<size_t>(kernels().find_at_least(x.data(), n, limit, found.data())));
    EXPECT_EQ(found, expected);
  }
}

TEST_P(KernelsTest, NormsAreThoseOfDoubleArithmetic) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = RandomFloats(n, 5, 3.0);
    const std::vector<float> weight = RandomFloats(n, 6);
    std::vector<float> out(x.size());
    kernels().rms_norm(x.data(), weight.data(), n, 1e-5F, out.data());
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * value;
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(out[i], x[i] * factor * weight[i], 2e-6 * std::abs(x[i] * factor * weight[i]));
    }
  }
}

TEST_P(KernelsTest, RotationTurnsHalvesAgainstEachOther) {
  for (const int64_t half : kSizes) {
    const std::vector<float> head = RandomFloats(2 * half, 7);
    const std::vector<float> angles = RandomFloats(half, 8);
    std::vector<float> cosines;
    std::vector<float> sines;
    for (const float angle : angles) {
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
    std::vector<float> turned = head;
    kernels().rotate(turned.data(), cosines.data(), sines.data(), half);
    for (size_t i = 0; i < angles.size(); ++i) {
      const double first = head[i];
      const double second = head[i + angles.size()];
      EXPECT_NEAR(turned[i], first * cosines[i] - second * sines[i], 1e-6);
      EXPECT_NEAR(turned[i + angles.size()], second * cosines[i] + first * sines[i], 1e-6);
    }
  }
}

TEST_P(KernelsTest, RoundsToBf16AsTheFormatsDo) {
  std::vector<float> x = RandomFloats(200, 9, 10.0);
  x.insert(x.end(),
           {0.0F, -0.0F, kInfinity, -kInfinity, kNaN, 3.4e38F, 1e-40F, 1.00390625F, 1.01171875F});
  for (int64_t n : {int64_t{1}, int64_t{16}, static_cast<int64_t>(x.size())}) {
    std::vector<uint16_t> rounded(static_cast<size_t>(n));
    kernels().to_bf16(x.data(), n, rounded.data());
    std::vector<float> back(static_cast<size_t>(n));
    kernels().from_bf16(rounded.data(), n, back.data());
    for (size_t i = 0; i < rounded.size(); ++i) {
      ASSERT_EQ(rounded[i], FloatToBF16(x[i])) << x[i];
      ASSERT_EQ(std::bit_cast<uint32_t>(back[i]), static_cast<uint32_t>(rounded[i]) << 16);
    }
  }
}

// What a level computes, bit by bit, to hold the levels against each other.
std::vector<uint32_t> Everything(const Kernels& kernels, int64_t n) {
  std::vector<float> results;
  const std::vector<float> x = RandomFloats(n, 21, 4.0);
  const std::vector<float> y = RandomFloats(n, 22);
  std::vector<float> out(x.size());
  results.push_back(kernels.max_of(x.data(), n));
  results.push_back(kernels.exp_sum(x.data(), n, 1.0F, 0.9F, out.data()));
  results.insert(results.end(), out.begin(), out.end());
  results.push_back(kernels.sum_at_least(x.data(), n, 0.3F));
  kernels.rms_norm(x.data(), y.data(), n, 1e-6F, out.data());
  results.insert(results.end(), out.begin(), out.end());
  kernels.add_scaled(0.37F, y.data(), n, out.data());
  results.insert(results.end(), out.begin(), out.end());
  kernels.rotate(out.data(), x.data(), y.data(), n / 2);
  results.insert(results.end(), out.begin(), out.end());
  return BitsOf(results);
}

TEST_P(KernelsTest, AgreesWithThePortableLevelToTheBit) {
  for (const int64_t n : kSizes) {
    EXPECT_EQ(Everything(kernels(), n), Everything(KernelsOf(Isa::kPortable), n)) << n;
  }
}

TEST(IsaTest, LevelsLeadFromPortableToTheBest) {
  const std::vector<Isa>& levels = IsaLevels();
  EXPECT_EQ(levels.front(), Isa::kPortable);
  EXPECT_EQ(levels.back(), BestIsa());
  EXPECT_EQ(std::set(levels.begin(), levels.end()).size(), levels.size());
#if defined(__aarch64__)
  EXPECT_TRUE(HasIsa(Isa::kNeon)) << "every AArch64 processor has it";
#endif
}

}  // namespace
}  // namespace pace
