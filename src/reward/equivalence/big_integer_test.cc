#include "reward/equivalence/big_integer.h"

#include <gtest/gtest.h>

#include <string>

#include "core/random.h"
#include "reward/equivalence/rational.h"

namespace pace::equiv {
namespace {

// A random number of up to `max_bits` bits, small ones as likely as large ones.
BigInteger RandomInteger(const CounterRandom& random, uint64_t trial, uint64_t which,
                         uint64_t max_bits) {
  const uint64_t bits = random.Bits(trial, which * 100) % (max_bits + 1);
  BigInteger value(0);
  const BigInteger base(int64_t{1} << 16);
  for (uint64_t i = 0; i * 16 < bits; ++i) {
    value = value * base +
            BigInteger(static_cast<int64_t>(random.Bits(trial, which * 100 + 1 + i) & 0xFFFF));
  }
  return random.Bits(trial, which * 100 + 99) % 2 == 0 ? value : -value;
}

TEST(BigIntegerTest, AgreesWithTheMachineWhereItFits) {
  const CounterRandom random(1, 1);
  for (uint64_t trial = 0; trial < 2000; ++trial) {
    const auto a = static_cast<int64_t>(random.Bits(trial, 0)) >> (random.Bits(trial, 2) % 60 + 2);
    const auto b = static_cast<int64_t>(random.Bits(trial, 1)) >> (random.Bits(trial, 3) % 60 + 2);
    EXPECT_EQ((BigInteger(a) + BigInteger(b)).ToInt64(), a + b);
    EXPECT_EQ((BigInteger(a) - BigInteger(b)).ToInt64(), a - b);
    EXPECT_EQ(BigInteger(a) < BigInteger(b), a < b);
    if (b == 0) continue;
    const auto [quotient, rest] = BigInteger::Divide(BigInteger(a), BigInteger(b));
    EXPECT_EQ(quotient.ToInt64(), a / b);
    EXPECT_EQ(rest.ToInt64(), a % b);
  }
}

TEST(BigIntegerTest, DivisionUndoesMultiplication) {
  const CounterRandom random(2, 1);
  for (uint64_t trial = 0; trial < 1000; ++trial) {
    const BigInteger a = RandomInteger(random, trial, 0, 700);
    const BigInteger b = RandomInteger(random, trial, 1, 400);
    const BigInteger c = RandomInteger(random, trial, 2, 400);
    EXPECT_EQ((a + b) * c, a * c + b * c);
    EXPECT_EQ(a - b, -(b - a));
    if (b.IsZero()) continue;
    const auto [quotient, rest] = BigInteger::Divide(a, b);
    EXPECT_EQ(quotient * b + rest, a);
    EXPECT_LT(rest.Magnitude(), b.Magnitude());
    EXPECT_TRUE(rest.IsZero() || rest.IsNegative() == a.IsNegative());
  }
}

TEST(BigIntegerTest, TheDivisorThatNeedsItsGuessCorrected) {
  // 2^96 - 1 over 2^64 - 1 and a dividend made to overshoot the first guess.
  const BigInteger two32(int64_t{1} << 32);
  const BigInteger top = two32 * two32 * two32;
  const BigInteger divisor = two32 * two32 - BigInteger(1);
  for (int64_t offset = -3; offset <= 3; ++offset) {
    const BigInteger dividend = top * two32 - BigInteger(1) + BigInteger(offset);
    const auto [quotient, rest] = BigInteger::Divide(dividend, divisor);
    EXPECT_EQ(quotient * divisor + rest, dividend);
    EXPECT_LT(rest, divisor);
  }
}

TEST(BigIntegerTest, GcdIsThatOfEuclid) {
  const auto euclid = [](BigInteger a, BigInteger b) {
    while (!b.IsZero()) a = std::exchange(b, BigInteger::Divide(a, b).second);
    return a;
  };
  // Of Fibonacci numbers every quotient is one, and the algorithm takes longest.
  BigInteger one(1);
  BigInteger two(2);
  for (int i = 0; i < 400; ++i) one = std::exchange(two, one + two);
  EXPECT_EQ(BigInteger::Gcd(one, two), BigInteger(1));
  EXPECT_EQ(BigInteger::Gcd(one * two, two), two);
  for (size_t digits = 1; digits < 120; ++digits) {
    const BigInteger a = BigInteger::FromDigits(std::string(digits, '7') + "30128");
    const BigInteger b = BigInteger::FromDigits(std::string(digits / 2 + 1, '9') + "0624");
    EXPECT_EQ(BigInteger::Gcd(a, b), euclid(a, b)) << digits;
    EXPECT_EQ(BigInteger::Gcd(b * b, a * b), euclid(a * b, b * b)) << digits;
    EXPECT_EQ(BigInteger::Gcd(a * one, b * one), euclid(a, b) * one) << digits;
  }
}

TEST(BigIntegerTest, GcdDividesBothAndIsTheLargest) {
  const CounterRandom random(3, 1);
  for (uint64_t trial = 0; trial < 200; ++trial) {
    const BigInteger a = RandomInteger(random, trial, 0, 300);
    const BigInteger b = RandomInteger(random, trial, 1, 300);
    const BigInteger c = RandomInteger(random, trial, 2, 100).Magnitude() + BigInteger(1);
    const BigInteger divisor = BigInteger::Gcd(a * c, b * c);
    EXPECT_EQ(divisor, BigInteger::Gcd(a, b) * c);
  }
  EXPECT_EQ(BigInteger::Gcd(BigInteger(0), BigInteger(0)), BigInteger(0));
  EXPECT_EQ(BigInteger::Gcd(BigInteger(-12), BigInteger(18)), BigInteger(6));
}

TEST(BigIntegerTest, ReadsDigitsAndRefusesWhatDoesNotFit) {
  EXPECT_EQ(BigInteger::FromDigits("000"), BigInteger(0));
  EXPECT_EQ(BigInteger::FromDigits("9223372036854775807").ToInt64(), INT64_MAX);
  EXPECT_EQ(BigInteger::FromDigits("9223372036854775808").ToInt64(), std::nullopt);
  EXPECT_EQ(BigInteger(INT64_MIN) + BigInteger::FromDigits("9223372036854775808"), BigInteger(0));
  EXPECT_EQ(BigInteger::FromDigits("18446744073709551616").ToReal(), 18446744073709551616.0L);
  EXPECT_EQ(BigInteger::FromDigits("18446744073709551616").NumBits(), 65u);
}

TEST(RationalTest, KeepsOneForm) {
  EXPECT_EQ(Rational::FromText("0.50"), Divide(Rational(1), Rational(2)));
  EXPECT_EQ(Rational::FromText(".5"), Rational::FromText("0.5"));
  EXPECT_EQ(Divide(Rational(3), Rational(-6)), Divide(Rational(-1), Rational(2)));
  EXPECT_EQ(Rational::FromText("1.2.3"), std::nullopt);
  EXPECT_EQ(Rational::FromText("."), std::nullopt);
  EXPECT_EQ(Divide(Rational(1), Rational(0)), std::nullopt);
}

TEST(RationalTest, PowersAndRootsAreExactOrNone) {
  EXPECT_EQ(Power(Rational(2), 10), Rational(1024));
  EXPECT_EQ(Power(Rational(2), -1), Rational::FromText("0.5"));
  EXPECT_EQ(Power(Rational(0), -1), std::nullopt);
  EXPECT_EQ(Power(Rational(-1), INT64_MAX), Rational(-1));
  EXPECT_EQ(Power(Rational(3), INT64_MAX), std::nullopt);
  EXPECT_EQ(Power(Rational(3), INT64_MIN), std::nullopt);
  EXPECT_EQ(Root(Rational(27), 3), Rational(3));
  EXPECT_EQ(Root(*Rational::FromText("2.25"), 2), Rational::FromText("1.5"));
  EXPECT_EQ(Root(Rational(2), 2), std::nullopt);
  EXPECT_EQ(Root(Rational(0), 5), Rational(0));
  EXPECT_EQ(Root(Rational(1024), 1000), std::nullopt);
}

TEST(RationalTest, RoundsDown) {
  EXPECT_EQ(Floor(*Rational::FromText("2.5")), Rational(2));
  EXPECT_EQ(Floor(Negate(*Rational::FromText("2.5"))), Rational(-3));
  EXPECT_EQ(Floor(Rational(-3)), Rational(-3));
  EXPECT_TRUE(IsLess(Rational(-3), *Rational::FromText("0.1")));
  EXPECT_FALSE(IsLess(Rational(1), Rational(1)));
}

TEST(RationalTest, GivesUpBeyondItsBound) {
  const MaybeRational large = Power(Rational(2), 2047);
  ASSERT_TRUE(large.has_value());
  EXPECT_EQ(Multiply(*large, Rational(2)), std::nullopt);
  EXPECT_EQ(Rational::FromText(std::string(10000, '9')), std::nullopt);
}

}  // namespace
}  // namespace pace::equiv
