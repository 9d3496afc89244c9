#include "reward/equivalence/rational.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/random.h"

namespace pace::equiv {
namespace {

// A random integer of up to `max_bits` bits, small ones as likely as large ones.
Rational RandomInteger(const CounterRandom& random, uint64_t trial, uint64_t which,
                       uint64_t max_bits) {
  const uint64_t bits = random.Bits(trial, which * 100) % (max_bits + 1);
  Rational value(0);
  for (uint64_t i = 0; i * 16 < bits; ++i) {
    const auto word = static_cast<int64_t>(random.Bits(trial, which * 100 + 1 + i) & 0xFFFF);
    value = *Add(*Multiply(value, Rational(int64_t{1} << 16)), Rational(word));
  }
  return random.Bits(trial, which * 100 + 99) % 2 == 0 ? value : Negate(value);
}

TEST(RationalTest, AgreesWithTheMachineWhereItFits) {
  const CounterRandom random(1, 1);
  for (uint64_t trial = 0; trial < 2000; ++trial) {
    const auto a = static_cast<int64_t>(random.Bits(trial, 0)) >> (random.Bits(trial, 2) % 60 + 2);
    const auto b = static_cast<int64_t>(random.Bits(trial, 1)) >> (random.Bits(trial, 3) % 60 + 2);
    EXPECT_EQ(Add(Rational(a), Rational(b)), Rational(a + b));
    EXPECT_EQ(Subtract(Rational(a), Rational(b))->ToInt64(), a - b);
    EXPECT_EQ(IsLess(Rational(a), Rational(b)), a < b);
    EXPECT_EQ(Rational(a).ToReal(), static_cast<long double>(a));
    if (b == 0) continue;
    const int64_t floor = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    EXPECT_EQ(Floor(*Divide(Rational(a), Rational(b))).ToInt64(), floor);
    if (b < 0) continue;
    EXPECT_EQ(Rational(a).Modulo(static_cast<uint64_t>(b)), static_cast<uint64_t>(a - floor * b));
  }
}

TEST(RationalTest, DivisionUndoesMultiplication) {
  const CounterRandom random(2, 1);
  for (uint64_t trial = 0; trial < 1000; ++trial) {
    const Rational a = RandomInteger(random, trial, 0, 700);
    const Rational b = RandomInteger(random, trial, 1, 400);
    const Rational c = RandomInteger(random, trial, 2, 400);
    EXPECT_EQ(Multiply(*Add(a, b), c), Add(*Multiply(a, c), *Multiply(b, c)));
    EXPECT_EQ(*Subtract(a, b), Negate(*Subtract(b, a)));
    if (b.IsZero()) continue;
    EXPECT_EQ(Divide(*Multiply(a, b), b), a);
    const Rational ratio = *Divide(a, b);
    EXPECT_EQ(Multiply(ratio, b), a);
    const Rational rest = *Subtract(ratio, Floor(ratio));
    EXPECT_FALSE(rest.IsNegative());
    EXPECT_TRUE(IsLess(rest, Rational(1)));
  }
}

TEST(RationalTest, ReducesByTheGreatestCommonDivisor) {
  // Of Fibonacci numbers every quotient of Euclid's algorithm is one: it takes longest.
  Rational one(1);
  Rational two(2);
  for (int i = 0; i < 400; ++i) one = std::exchange(two, *Add(one, two));
  EXPECT_EQ(Divide(one, two)->Numerator(), one);
  EXPECT_EQ(Divide(one, two)->Denominator(), two);
  EXPECT_EQ(Divide(*Multiply(one, two), two), one);
  const CounterRandom random(3, 1);
  for (uint64_t trial = 0; trial < 200; ++trial) {
    const Rational a = RandomInteger(random, trial, 0, 300);
    const Rational b = *Add(*Power(RandomInteger(random, trial, 1, 300), 2), Rational(1));
    const Rational c = *Add(*Power(RandomInteger(random, trial, 2, 100), 2), Rational(1));
    const MaybeRational reduced = Divide(a, b);
    EXPECT_EQ(Divide(*Multiply(a, c), *Multiply(b, c)), reduced);
    EXPECT_FALSE(reduced->Denominator().IsNegative());
  }
  EXPECT_EQ(Divide(Rational(-12), Rational(18))->ToText(), "-2/3");
}

TEST(RationalTest, ReadsDigitsAndRefusesWhatDoesNotFit) {
  EXPECT_EQ(Rational::FromText("000"), Rational(0));
  EXPECT_EQ(Rational::FromText("9223372036854775807")->ToInt64(), INT64_MAX);
  EXPECT_EQ(Rational::FromText("9223372036854775808")->ToInt64(), std::nullopt);
  EXPECT_EQ(Add(Rational(INT64_MIN), *Rational::FromText("9223372036854775808")), Rational(0));
  EXPECT_EQ(Rational::FromText("18446744073709551616")->ToReal(), 18446744073709551616.0L);
  EXPECT_EQ(Rational::FromText("18446744073709551616")->NumBits(), 65u + 1u);
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
