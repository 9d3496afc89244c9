#include "reward/equivalence/rational.h"

#include <boost/multiprecision/cpp_int.hpp>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "core/concat.h"

namespace pace::equiv {

using BigInteger = boost::multiprecision::number<boost::multiprecision::cpp_int_backend<>,
                                                 boost::multiprecision::et_off>;

struct Rational::Fraction {
  BigInteger numerator;
  BigInteger denominator = 1;  // > 0, without a common divisor with the numerator
};

namespace {

constexpr size_t kMaxDigits = kMaxRationalBits / 4;

size_t NumBitsOf(const BigInteger& value) {
  return value.is_zero() ? 0 : msb(abs(value)) + 1;
}

long double RealOf(const BigInteger& value) {
  constexpr unsigned kWordBits = 32;
  std::vector<uint32_t> words;
  export_bits(abs(value), std::back_inserter(words), kWordBits);
  long double real = 0;
  for (const uint32_t word : words) real = real * 4294967296.0L + static_cast<long double>(word);
  return value.sign() < 0 ? -real : real;
}

// numerator / denominator, reduced.
MaybeRational Reduced(BigInteger numerator, BigInteger denominator) {
  if (denominator.is_zero()) return std::nullopt;
  // Twice the bound: a product of two bounded numbers may still reduce.
  if (NumBitsOf(numerator) > 2 * kMaxRationalBits ||
      NumBitsOf(denominator) > 2 * kMaxRationalBits) {
    return std::nullopt;
  }
  if (denominator.sign() < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  if (denominator != 1) {
    const BigInteger divisor = gcd(numerator, denominator);
    numerator /= divisor;
    denominator /= divisor;
  }
  if (NumBitsOf(numerator) > kMaxRationalBits || NumBitsOf(denominator) > kMaxRationalBits) {
    return std::nullopt;
  }
  return Rational(Rational::Fraction{std::move(numerator), std::move(denominator)});
}

// The integer whose power is `value`, by bisection.
std::optional<BigInteger> IntegerRoot(const BigInteger& value, int64_t degree) {
  if (value.is_zero()) return value;
  BigInteger low = 0;
  BigInteger high = BigInteger(1) << (NumBitsOf(value) / static_cast<size_t>(degree) + 1);
  while (low <= high) {
    const BigInteger middle = (low + high) / 2;
    BigInteger power = 1;
    for (int64_t i = 0; i < degree && power <= value; ++i) power *= middle;
    if (power == value) return middle;
    if (power < value) {
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return std::nullopt;
}

}  // namespace

Rational::Rational(int64_t value) : Rational(Fraction{value}) {}

Rational::Rational(Fraction fraction)
    : fraction_(std::make_shared<const Fraction>(std::move(fraction))) {}

MaybeRational Rational::FromText(std::string_view text) {
  BigInteger value = 0;
  BigInteger scale = 1;
  size_t num_digits = 0;
  bool has_point = false;
  for (const char c : text) {
    if (c == '.') {
      if (has_point) return std::nullopt;
      has_point = true;
      continue;
    }
    if (c < '0' || c > '9' || num_digits >= kMaxDigits) return std::nullopt;
    ++num_digits;
    value = value * 10 + (c - '0');
    if (has_point) scale *= 10;
  }
  if (num_digits == 0) return std::nullopt;
  return Reduced(std::move(value), std::move(scale));
}

Rational Rational::Numerator() const {
  return Rational(Fraction{fraction_->numerator});
}

Rational Rational::Denominator() const {
  return Rational(Fraction{fraction_->denominator});
}

size_t Rational::NumBits() const {
  return NumBitsOf(fraction_->numerator) + NumBitsOf(fraction_->denominator);
}

bool Rational::IsInteger() const {
  return fraction_->denominator == 1;
}

bool Rational::IsZero() const {
  return fraction_->numerator.is_zero();
}

bool Rational::IsNegative() const {
  return fraction_->numerator.sign() < 0;
}

std::optional<int64_t> Rational::ToInt64() const {
  if (!IsInteger() || NumBitsOf(fraction_->numerator) > 63) return std::nullopt;
  return static_cast<int64_t>(fraction_->numerator);
}

long double Rational::ToReal() const {
  return RealOf(fraction_->numerator) / RealOf(fraction_->denominator);
}

std::string Rational::ToText() const {
  return Concat(fraction_->numerator.str(), "/", fraction_->denominator.str());
}

uint64_t Rational::Modulo(uint64_t divisor) const {
  const auto rest = static_cast<uint64_t>(abs(fraction_->numerator) % divisor);
  return IsNegative() && rest != 0 ? divisor - rest : rest;
}

bool operator==(const Rational& a, const Rational& b) {
  return a.fraction_->numerator == b.fraction_->numerator &&
         a.fraction_->denominator == b.fraction_->denominator;
}

MaybeRational Add(const Rational& a, const Rational& b) {
  const auto& [top, bottom] = a.fraction();
  const auto& [other_top, other_bottom] = b.fraction();
  return Reduced(top * other_bottom + other_top * bottom, bottom * other_bottom);
}

MaybeRational Subtract(const Rational& a, const Rational& b) {
  return Add(a, Negate(b));
}

MaybeRational Multiply(const Rational& a, const Rational& b) {
  return Reduced(a.fraction().numerator * b.fraction().numerator,
                 a.fraction().denominator * b.fraction().denominator);
}

MaybeRational Divide(const Rational& a, const Rational& b) {
  return Reduced(a.fraction().numerator * b.fraction().denominator,
                 a.fraction().denominator * b.fraction().numerator);
}

MaybeRational Power(const Rational& base, int64_t exponent) {
  if (exponent < 0) {
    if (exponent == std::numeric_limits<int64_t>::min()) return std::nullopt;
    const MaybeRational inverse = Divide(Rational(1), base);
    return inverse.has_value() ? Power(*inverse, -exponent) : std::nullopt;
  }
  const bool is_unit =
      base.IsZero() || (base.IsInteger() && NumBitsOf(base.fraction().numerator) == 1);
  if (is_unit && exponent > 2) exponent = 2 - exponent % 2;
  if (!is_unit && exponent > static_cast<int64_t>(kMaxRationalBits)) return std::nullopt;
  Rational out(1);
  MaybeRational square = base;
  for (; exponent > 0; exponent /= 2) {
    if (!square.has_value()) return std::nullopt;
    if (exponent % 2 == 1) {
      MaybeRational next = Multiply(out, *square);
      if (!next.has_value()) return std::nullopt;
      out = *std::move(next);
    }
    if (exponent > 1) square = Multiply(*square, *square);
  }
  return out;
}

MaybeRational Root(const Rational& value, int64_t degree) {
  constexpr int64_t kMaxDegree = 64;
  constexpr size_t kMaxBits = 256;
  const auto& [numerator, denominator] = value.fraction();
  if (degree > kMaxDegree || value.IsNegative()) return std::nullopt;
  if (NumBitsOf(numerator) > kMaxBits || NumBitsOf(denominator) > kMaxBits) return std::nullopt;
  const std::optional<BigInteger> top = IntegerRoot(numerator, degree);
  if (!top.has_value()) return std::nullopt;
  const std::optional<BigInteger> bottom = IntegerRoot(denominator, degree);
  if (!bottom.has_value()) return std::nullopt;
  return Reduced(*top, *bottom);
}

Rational Negate(const Rational& value) {
  return Rational(Rational::Fraction{-value.fraction().numerator, value.fraction().denominator});
}

Rational Floor(const Rational& value) {
  const auto& [numerator, denominator] = value.fraction();
  const BigInteger quotient = numerator / denominator;
  const bool rounds_up = value.IsNegative() && !value.IsInteger();
  return Rational(Rational::Fraction{rounds_up ? quotient - 1 : quotient});
}

bool IsLess(const Rational& a, const Rational& b) {
  return a.fraction().numerator * b.fraction().denominator <
         b.fraction().numerator * a.fraction().denominator;
}

}  // namespace pace::equiv
