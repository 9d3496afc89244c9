#include "reward/equivalence/rational.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace pace::equiv {
namespace {

constexpr size_t kMaxDigits = kMaxRationalBits / 4;

// The integer whose power is `value`, by bisection.
std::optional<BigInteger> IntegerRoot(const BigInteger& value, int64_t degree) {
  if (value.IsZero()) return value;
  const size_t num_bits = value.NumBits() / static_cast<size_t>(degree) + 1;
  BigInteger low(0);
  BigInteger high(1);
  for (size_t i = 0; i < num_bits; ++i) high = high + high;
  const BigInteger two(2);
  while (low <= high) {
    const BigInteger middle = BigInteger::Divide(low + high, two).first;
    BigInteger power(1);
    for (int64_t i = 0; i < degree && power <= value; ++i) power = power * middle;
    if (power == value) return middle;
    if (power < value) {
      low = middle + BigInteger(1);
    } else {
      high = middle - BigInteger(1);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Rational> Rational::FromText(std::string_view text) {
  std::string digits;
  BigInteger scale(1);
  bool has_point = false;
  for (const char c : text) {
    if (c == '.') {
      if (has_point) return std::nullopt;
      has_point = true;
      continue;
    }
    if (c < '0' || c > '9' || digits.size() >= kMaxDigits) return std::nullopt;
    digits += c;
    if (has_point) scale = scale * BigInteger(10);
  }
  if (digits.empty()) return std::nullopt;
  return Make(BigInteger::FromDigits(digits), std::move(scale));
}

std::optional<Rational> Rational::Make(BigInteger numerator, BigInteger denominator) {
  if (denominator.IsZero()) return std::nullopt;
  // Twice the bound: a product of two that keep it may still reduce.
  if (numerator.NumBits() > 2 * kMaxRationalBits || denominator.NumBits() > 2 * kMaxRationalBits) {
    return std::nullopt;
  }
  if (denominator.IsNegative()) {
    numerator = -numerator;
    denominator = -denominator;
  }
  if (denominator != BigInteger(1)) {
    const BigInteger divisor = BigInteger::Gcd(numerator, denominator);
    numerator = BigInteger::Divide(numerator, divisor).first;
    denominator = BigInteger::Divide(denominator, divisor).first;
  }
  if (numerator.NumBits() > kMaxRationalBits || denominator.NumBits() > kMaxRationalBits) {
    return std::nullopt;
  }
  Rational out;
  out.numerator_ = std::move(numerator);
  out.denominator_ = std::move(denominator);
  return out;
}

std::optional<int64_t> Rational::ToInt64() const {
  return IsInteger() ? numerator_.ToInt64() : std::nullopt;
}

long double Rational::ToReal() const {
  return numerator_.ToReal() / denominator_.ToReal();
}

MaybeRational Add(const Rational& a, const Rational& b) {
  return Rational::Make(a.numerator() * b.denominator() + b.numerator() * a.denominator(),
                        a.denominator() * b.denominator());
}

MaybeRational Subtract(const Rational& a, const Rational& b) {
  return Add(a, Negate(b));
}

MaybeRational Multiply(const Rational& a, const Rational& b) {
  return Rational::Make(a.numerator() * b.numerator(), a.denominator() * b.denominator());
}

MaybeRational Divide(const Rational& a, const Rational& b) {
  return Rational::Make(a.numerator() * b.denominator(), a.denominator() * b.numerator());
}

MaybeRational Power(const Rational& base, int64_t exponent) {
  if (exponent < 0) {
    if (exponent == std::numeric_limits<int64_t>::min()) return std::nullopt;
    const MaybeRational inverse = Divide(Rational(1), base);
    return inverse.has_value() ? Power(*inverse, -exponent) : std::nullopt;
  }
  const bool is_unit = base.IsZero() || (base.IsInteger() && base.numerator().NumBits() == 1);
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
  if (degree > kMaxDegree || value.IsNegative()) return std::nullopt;
  if (value.numerator().NumBits() > kMaxBits || value.denominator().NumBits() > kMaxBits) {
    return std::nullopt;
  }
  const std::optional<BigInteger> top = IntegerRoot(value.numerator(), degree);
  if (!top.has_value()) return std::nullopt;
  const std::optional<BigInteger> bottom = IntegerRoot(value.denominator(), degree);
  if (!bottom.has_value()) return std::nullopt;
  return Rational::Make(*top, *bottom);
}

Rational Negate(const Rational& value) {
  return *Rational::Make(-value.numerator(), value.denominator());
}

Rational Floor(const Rational& value) {
  const auto [quotient, rest] = BigInteger::Divide(value.numerator(), value.denominator());
  return *Rational::Make(rest.IsNegative() ? quotient - BigInteger(1) : quotient, BigInteger(1));
}

bool IsLess(const Rational& a, const Rational& b) {
  return a.numerator() * b.denominator() < b.numerator() * a.denominator();
}

}  // namespace pace::equiv
