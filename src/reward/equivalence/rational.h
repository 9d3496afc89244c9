// Rational: exact fractions of bounded length.
//
// Arithmetic gives none where the result would need more than kMaxRationalBits
// above or below the line, or would divide by zero: exactness is a shortcut,
// and the caller goes on with reals.
//
//   Rational::FromText("0.25") == Divide(Rational(1), Rational(4))
//
// Thread-safety: values.
#ifndef PACE_REWARD_EQUIVALENCE_RATIONAL_H_
#define PACE_REWARD_EQUIVALENCE_RATIONAL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reward/equivalence/big_integer.h"

namespace pace::equiv {

inline constexpr size_t kMaxRationalBits = 2048;

class Rational {
 public:
  Rational() : denominator_(1) {}
  explicit Rational(int64_t value) : numerator_(value), denominator_(1) {}

  // "12", "12.50", ".5": digits and at most one point, at least one digit.
  static std::optional<Rational> FromText(std::string_view text);
  // numerator / denominator, reduced.
  static std::optional<Rational> Make(BigInteger numerator, BigInteger denominator);

  const BigInteger& numerator() const { return numerator_; }
  const BigInteger& denominator() const { return denominator_; }  // > 0

  bool IsInteger() const { return denominator_ == BigInteger(1); }
  bool IsZero() const { return numerator_.IsZero(); }
  bool IsNegative() const { return numerator_.IsNegative(); }
  // None where it is no integer of 64 bits.
  std::optional<int64_t> ToInt64() const;
  long double ToReal() const;

  friend bool operator==(const Rational& a, const Rational& b) = default;

 private:
  BigInteger numerator_;
  BigInteger denominator_;
};

using MaybeRational = std::optional<Rational>;

MaybeRational Add(const Rational& a, const Rational& b);
MaybeRational Subtract(const Rational& a, const Rational& b);
MaybeRational Multiply(const Rational& a, const Rational& b);
MaybeRational Divide(const Rational& a, const Rational& b);
MaybeRational Power(const Rational& base, int64_t exponent);
// The root where it is exact, of numbers up to 256 bits: Root(27/8, 3) = 3/2.
// REQUIRES: degree >= 1
MaybeRational Root(const Rational& value, int64_t degree);
Rational Negate(const Rational& value);
Rational Floor(const Rational& value);
bool IsLess(const Rational& a, const Rational& b);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_RATIONAL_H_
