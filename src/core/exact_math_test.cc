#include "core/exact_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/random.h"

namespace pace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Draws over the ranges in use.
class ExactMathTest : public testing::Test {
 protected:
  static constexpr uint64_t kDraws = 20000;

  double Between(double low, double high, uint64_t draw, uint64_t use) const {
    return low + (high - low) * random_.Uniform(draw, use);
  }

 private:
  CounterRandom random_{11, 0};
};

// Adds the bits of results to a hash (FNV-1a over whole words).
class BitHash {
 public:
  void Add(double value) { hash_ = (hash_ ^ std::bit_cast<uint64_t>(value)) * 1099511628211U; }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 14695981039346656037U;
};

TEST_F(ExactMathTest, BitsAreTheSameOnEveryProcessor) {
  BitHash hash;
  for (uint64_t i = 0; i < kDraws; ++i) {
    hash.Add(exact::Exp(Between(-50, 50, i, 0)));
    hash.Add(exact::Log(Between(0, 10, i, 1)));
    hash.Add(exact::Pow(Between(0, 1, i, 2), Between(0, 5, i, 3)));
    hash.Add(exact::Cos(Between(0, 7, i, 4)));
    hash.Add(exact::NormalCdf(Between(-9, 9, i, 5)));
  }
  EXPECT_EQ(hash.value(), 7136209011816001372U);
}

TEST_F(ExactMathTest, TheQuickPhaseChangesNoResult) {
  for (uint64_t i = 0; i < kDraws; ++i) {
    for (const double range : {1e-3, 1.0, 60.0, 800.0}) {
      const double x = Between(-range, range, i, 0);
      EXPECT_EQ(exact::Exp(x), exact::reference::Exp(x)) << x;
    }
    for (const double range : {1e-300, 1.0, 2.0, 1e300}) {
      const double x = Between(0, range, i, 1);
      EXPECT_EQ(exact::Log(x), exact::reference::Log(x)) << x;
    }
    const double x = Between(0, 2, i, 2);
    for (const double y : {0.5, 1.0, 2.0, Between(-5, 5, i, 3), Between(-900, 900, i, 4)}) {
      EXPECT_EQ(exact::Pow(x, y), exact::reference::Pow(x, y)) << x << " " << y;
    }
    for (const double range : {1e-3, 7.0, 100.0}) {
      const double angle = Between(-range, range, i, 5);
      EXPECT_EQ(exact::Cos(angle), exact::reference::Cos(angle)) << angle;
    }
  }
}

// Beside the steps of the tables, and where results are small.
TEST_F(ExactMathTest, TheQuickPhaseChangesNoResultAtTheEdgesOfItsTables) {
  const double ln2 = std::log(2.0), half_pi = std::acos(0.0);
  for (int n = -300; n <= 300; ++n) {
    for (const double offset : {-1e-9, -0x1p-50, 0.0, 0x1p-50, 1e-9}) {
      const double x = (n + 0.5) * ln2 / 64 + offset;
      EXPECT_EQ(exact::Exp(x), exact::reference::Exp(x)) << x;
      const double y = std::abs((n + 0.5) / 64) + offset;
      EXPECT_EQ(exact::Log(y), exact::reference::Log(y)) << y;
      for (const double angle : {(n + 0.5) * half_pi / 32 + offset, n * half_pi / 32 + offset}) {
        EXPECT_EQ(exact::Cos(angle), exact::reference::Cos(angle)) << angle;
      }
    }
  }
  for (const double x : {0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp+1023, 0x1.6a09e667f3bcdp+0}) {
    EXPECT_EQ(exact::Log(x), exact::reference::Log(x)) << x;
    EXPECT_EQ(exact::Pow(x, 0.25), exact::reference::Pow(x, 0.25)) << x;
  }
}

TEST_F(ExactMathTest, AgreesWithTheCLibraryToOneUnitInTheLastPlace) {
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double x = Between(-50, 50, i, 0);
    EXPECT_DOUBLE_EQ(exact::Exp(x), std::exp(x)) << x;
    const double y = Between(0, 10, i, 1);
    EXPECT_DOUBLE_EQ(exact::Log(y), std::log(y)) << y;
    const double base = Between(0, 1, i, 2);
    const double power = Between(0, 5, i, 3);
    EXPECT_DOUBLE_EQ(exact::Pow(base, power), std::pow(base, power)) << base << " " << power;
    const double angle = Between(0, 7, i, 4);
    EXPECT_DOUBLE_EQ(exact::Cos(angle), std::cos(angle)) << angle;
    const double z = Between(-9, 9, i, 5);
    const double share = 0.5 * std::erfc(-z / std::sqrt(2.0));
    EXPECT_NEAR(exact::NormalCdf(z), share, 1e-13 * share) << z;
  }
}

TEST_F(ExactMathTest, ExactResultsAreExact) {
  EXPECT_EQ(exact::Exp(0), 1);
  EXPECT_EQ(exact::Log(1), 0);
  EXPECT_EQ(exact::Pow(0.5, 4), 0.0625);
  EXPECT_EQ(exact::Pow(3, 4), 81);
  EXPECT_EQ(exact::Cos(0), 1);
  EXPECT_EQ(exact::NormalCdf(0), 0.5);
}

TEST_F(ExactMathTest, KeepsItsDigitsNearOne) {
  for (const double step : {0x1p-52, 0x1p-40, 0x1p-20, -0x1p-53, -0x1p-30}) {
    EXPECT_DOUBLE_EQ(exact::Log(1 + step), std::log1p(step)) << step;
  }
}

TEST_F(ExactMathTest, LimitsAreThoseOfTheCLibrary) {
  EXPECT_EQ(exact::Exp(1000), kInfinity);
  EXPECT_EQ(exact::Exp(-1000), 0);
  EXPECT_EQ(exact::Exp(kInfinity), kInfinity);
  EXPECT_EQ(exact::Exp(-kInfinity), 0);
  EXPECT_EQ(exact::Log(0), -kInfinity);
  EXPECT_EQ(exact::Log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exact::Log(-1)));
  for (const double x : {0.0, 0.5, 1.0, 2.0, kInfinity}) {
    for (const double y : {-kInfinity, -2.0, 0.0, 2.0, kInfinity}) {
      EXPECT_EQ(exact::Pow(x, y), std::pow(x, y)) << x << " " << y;
    }
  }
  EXPECT_EQ(exact::NormalCdf(-kInfinity), 0);
  EXPECT_EQ(exact::NormalCdf(kInfinity), 1);
}

}  // namespace
}  // namespace pace
