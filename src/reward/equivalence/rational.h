// Rational: exact fractions of bounded size, on Boost's integers.
//
// Arithmetic returns none if the result would need more than kMaxRationalBits in its
// numerator or denominator, or would divide by zero. The caller then continues with reals.
//
//   Rational::FromText("0.25") == Divide(Rational(1), Rational(4))
//
// Thread-safety: values; they do not change.
#ifndef PACE_REWARD_EQUIVALENCE_RATIONAL_H_
#define PACE_REWARD_EQUIVALENCE_RATIONAL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace pace::equiv {

inline constexpr size_t kMaxRationalBits = 2048;

class Rational;
using MaybeRational = std::optional<Rational>;

class Rational {
 public:
  Rational() : Rational(0) {}
  explicit Rational(int64_t value);

  // "12", "12.50", ".5": digits and at most one point, at least one digit.
  static MaybeRational FromText(std::string_view text);

  // Both are integers without a common divisor; the denominator is positive.
  Rational Numerator() const;
  Rational Denominator() const;
  // Of the numerator and the denominator together.
  size_t NumBits() const;

  bool IsInteger() const;
  bool IsZero() const;
  bool IsNegative() const;
  // None unless it is an integer whose magnitude has at most 63 bits.
  std::optional<int64_t> ToInt64() const;
  long double ToReal() const;
  std::string ToText() const;  // "-3/4", "2/1"
  // From 0 to divisor - 1. REQUIRES: IsInteger(), divisor > 0
  uint64_t Modulo(uint64_t divisor) const;

  friend bool operator==(const Rational& a, const Rational& b);

  // The two integers, hidden: Boost's header takes seconds to compile.
  struct Fraction;
  explicit Rational(Fraction fraction);
  const Fraction& fraction() const { return *fraction_; }

 private:
  std::shared_ptr<const Fraction> fraction_;
};

MaybeRational Add(const Rational& a, const Rational& b);
MaybeRational Subtract(const Rational& a, const Rational& b);
MaybeRational Multiply(const Rational& a, const Rational& b);
MaybeRational Divide(const Rational& a, const Rational& b);
MaybeRational Power(const Rational& base, int64_t exponent);
// The root if it is exact, of numbers up to 256 bits: Root(27/8, 3) = 3/2.
// REQUIRES: degree >= 1
MaybeRational Root(const Rational& value, int64_t degree);
Rational Negate(const Rational& value);
Rational Floor(const Rational& value);
bool IsLess(const Rational& a, const Rational& b);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_RATIONAL_H_
