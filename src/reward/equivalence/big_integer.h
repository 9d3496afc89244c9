// BigInteger: integers of any size, for answers that are compared exactly.
//
// Plain schoolbook arithmetic: numbers in answers are short, and callers bound
// their length (Rational does).
//
// Thread-safety: values.
#ifndef PACE_REWARD_EQUIVALENCE_BIG_INTEGER_H_
#define PACE_REWARD_EQUIVALENCE_BIG_INTEGER_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace pace::equiv {

class BigInteger {
 public:
  BigInteger() = default;
  BigInteger(int64_t value);

  // REQUIRES: digits holds nothing but '0' to '9'
  static BigInteger FromDigits(std::string_view digits);

  bool IsZero() const { return limbs_.empty(); }
  bool IsNegative() const { return negative_; }
  bool IsOdd() const { return !limbs_.empty() && (limbs_[0] & 1u) != 0; }
  size_t NumBits() const;

  // None where it does not fit.
  std::optional<int64_t> ToInt64() const;
  // The nearest long double, or an infinity.
  long double ToReal() const;

  BigInteger operator-() const;
  BigInteger Magnitude() const { return IsNegative() ? -*this : *this; }
  friend BigInteger operator+(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator-(const BigInteger& a, const BigInteger& b);
  friend BigInteger operator*(const BigInteger& a, const BigInteger& b);

  // Quotient rounded toward zero, and the remainder, which has the sign of `a`.
  // REQUIRES: b is not zero
  static std::pair<BigInteger, BigInteger> Divide(const BigInteger& a, const BigInteger& b);
  // Never negative; Gcd(0, 0) = 0.
  static BigInteger Gcd(BigInteger a, BigInteger b);

  friend bool operator==(const BigInteger& a, const BigInteger& b) = default;
  friend std::strong_ordering operator<=>(const BigInteger& a, const BigInteger& b);

 private:
  using Limbs = std::vector<uint32_t>;

  BigInteger(Limbs limbs, bool negative);
  static constexpr size_t kLeadingBits = 62;
  // kLeadingBits bits of the magnitude, from bit `shift` on.
  int64_t BitsFrom(size_t shift) const;
  static int CompareLimbs(const Limbs& a, const Limbs& b);
  static Limbs AddLimbs(const Limbs& a, const Limbs& b);
  static Limbs SubtractLimbs(const Limbs& a, const Limbs& b);  // REQUIRES: a >= b

  Limbs limbs_;  // from the lowest, without zeros at the top
  bool negative_ = false;
};

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_BIG_INTEGER_H_
