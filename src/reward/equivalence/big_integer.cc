#include "reward/equivalence/big_integer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

namespace pace::equiv {
namespace {

constexpr size_t kLimbBits = 32;

// limbs = limbs * factor + addend
void MultiplyAdd(std::vector<uint32_t>& limbs, uint32_t factor, uint32_t addend) {
  uint64_t carry = addend;
  for (uint32_t& limb : limbs) {
    carry += uint64_t{limb} * factor;
    limb = static_cast<uint32_t>(carry);
    carry >>= kLimbBits;
  }
  if (carry != 0) limbs.push_back(static_cast<uint32_t>(carry));
}

std::vector<uint32_t> ShiftLeft(const std::vector<uint32_t>& limbs, int bits) {
  std::vector<uint32_t> out(limbs.size() + 1, 0);
  for (size_t i = 0; i < limbs.size(); ++i) {
    const uint64_t wide = uint64_t{limbs[i]} << bits;
    out[i] |= static_cast<uint32_t>(wide);
    out[i + 1] = static_cast<uint32_t>(wide >> kLimbBits);
  }
  return out;
}

// Knuth's algorithm D. On return `a` holds the remainder, still shifted as `b`
// is. REQUIRES: b's top bit is set, b has two limbs or more, a has one more
// limb than its value needs.
std::vector<uint32_t> DivideShifted(std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  const size_t n = b.size();
  std::vector<uint32_t> quotient(a.size() - n, 0);
  for (size_t j = a.size() - n; j-- > 0;) {
    const uint64_t top = (uint64_t{a[j + n]} << kLimbBits) | a[j + n - 1];
    uint64_t guess = std::min<uint64_t>(top / b[n - 1], std::numeric_limits<uint32_t>::max());
    uint64_t rest = top - guess * b[n - 1];
    while (rest >> kLimbBits == 0 && guess * b[n - 2] > ((rest << kLimbBits) | a[j + n - 2])) {
      --guess;
      rest += b[n - 1];
    }
    uint64_t carry = 0;
    int64_t borrow = 0;
    for (size_t i = 0; i < n; ++i) {
      carry += guess * b[i];
      const int64_t difference = int64_t{a[i + j]} - static_cast<uint32_t>(carry) + borrow;
      a[i + j] = static_cast<uint32_t>(difference);
      borrow = difference >> kLimbBits;
      carry >>= kLimbBits;
    }
    const int64_t difference = int64_t{a[j + n]} - static_cast<int64_t>(carry) + borrow;
    a[j + n] = static_cast<uint32_t>(difference);
    if (difference < 0) {
      --guess;
      uint64_t sum = 0;
      for (size_t i = 0; i < n; ++i) {
        sum += uint64_t{a[i + j]} + b[i];
        a[i + j] = static_cast<uint32_t>(sum);
        sum >>= kLimbBits;
      }
      a[j + n] += static_cast<uint32_t>(sum);
    }
    quotient[j] = static_cast<uint32_t>(guess);
  }
  return quotient;
}

std::vector<uint32_t> ShiftRight(const std::vector<uint32_t>& limbs, int bits) {
  std::vector<uint32_t> out(limbs.size(), 0);
  for (size_t i = 0; i < limbs.size(); ++i) {
    const uint64_t high = i + 1 < limbs.size() ? limbs[i + 1] : 0;
    out[i] = static_cast<uint32_t>(((high << kLimbBits) | limbs[i]) >> bits);
  }
  return out;
}

}  // namespace

BigInteger::BigInteger(int64_t value) : negative_(value < 0) {
  uint64_t magnitude = static_cast<uint64_t>(value);
  if (negative_) magnitude = ~magnitude + 1;
  for (; magnitude != 0; magnitude >>= kLimbBits) {
    limbs_.push_back(static_cast<uint32_t>(magnitude));
  }
}

BigInteger::BigInteger(Limbs limbs, bool negative) : limbs_(std::move(limbs)), negative_(negative) {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  if (limbs_.empty()) negative_ = false;
}

BigInteger BigInteger::FromDigits(std::string_view digits) {
  Limbs limbs;
  for (const char c : digits) MultiplyAdd(limbs, 10, static_cast<uint32_t>(c - '0'));
  return {std::move(limbs), false};
}

size_t BigInteger::NumBits() const {
  if (limbs_.empty()) return 0;
  return limbs_.size() * kLimbBits - static_cast<size_t>(std::countl_zero(limbs_.back()));
}

std::optional<int64_t> BigInteger::ToInt64() const {
  if (NumBits() > 63) return std::nullopt;
  int64_t value = 0;
  for (size_t i = limbs_.size(); i-- > 0;) value = (value << kLimbBits) | limbs_[i];
  return negative_ ? -value : value;
}

long double BigInteger::ToReal() const {
  long double value = 0;
  for (size_t i = limbs_.size(); i-- > 0;) {
    value = value * 4294967296.0L + static_cast<long double>(limbs_[i]);
  }
  return negative_ ? -value : value;
}

BigInteger BigInteger::operator-() const {
  return {limbs_, !negative_};
}

int BigInteger::CompareLimbs(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

BigInteger::Limbs BigInteger::AddLimbs(const Limbs& a, const Limbs& b) {
  Limbs out;
  out.reserve(std::max(a.size(), b.size()) + 1);
  uint64_t carry = 0;
  for (size_t i = 0; i < std::max(a.size(), b.size()) || carry != 0; ++i) {
    carry += uint64_t{i < a.size() ? a[i] : 0} + (i < b.size() ? b[i] : 0);
    out.push_back(static_cast<uint32_t>(carry));
    carry >>= kLimbBits;
  }
  return out;
}

BigInteger::Limbs BigInteger::SubtractLimbs(const Limbs& a, const Limbs& b) {
  Limbs out(a.size(), 0);
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t difference = int64_t{a[i]} - (i < b.size() ? b[i] : 0) + borrow;
    out[i] = static_cast<uint32_t>(difference);
    borrow = difference >> kLimbBits;
  }
  return out;
}

BigInteger operator+(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ == b.negative_) return {BigInteger::AddLimbs(a.limbs_, b.limbs_), a.negative_};
  const int order = BigInteger::CompareLimbs(a.limbs_, b.limbs_);
  if (order >= 0) return {BigInteger::SubtractLimbs(a.limbs_, b.limbs_), a.negative_};
  return {BigInteger::SubtractLimbs(b.limbs_, a.limbs_), b.negative_};
}

BigInteger operator-(const BigInteger& a, const BigInteger& b) {
  return a + -b;
}

BigInteger operator*(const BigInteger& a, const BigInteger& b) {
  BigInteger::Limbs out(a.limbs_.size() + b.limbs_.size(), 0);
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.limbs_.size(); ++j) {
      carry += uint64_t{a.limbs_[i]} * b.limbs_[j] + out[i + j];
      out[i + j] = static_cast<uint32_t>(carry);
      carry >>= kLimbBits;
    }
    out[i + b.limbs_.size()] = static_cast<uint32_t>(carry);
  }
  return {std::move(out), a.negative_ != b.negative_};
}

std::pair<BigInteger, BigInteger> BigInteger::Divide(const BigInteger& a, const BigInteger& b) {
  if (CompareLimbs(a.limbs_, b.limbs_) < 0) return {BigInteger(), a};
  const bool negative = a.negative_ != b.negative_;
  if (b.limbs_.size() == 1) {
    Limbs quotient(a.limbs_.size(), 0);
    uint64_t rest = 0;
    for (size_t i = a.limbs_.size(); i-- > 0;) {
      rest = (rest << kLimbBits) | a.limbs_[i];
      quotient[i] = static_cast<uint32_t>(rest / b.limbs_[0]);
      rest %= b.limbs_[0];
    }
    return {{std::move(quotient), negative}, {{static_cast<uint32_t>(rest)}, a.negative_}};
  }
  const int shift = std::countl_zero(b.limbs_.back());
  Limbs dividend = ShiftLeft(a.limbs_, shift);
  Limbs divisor = ShiftLeft(b.limbs_, shift);
  divisor.pop_back();
  Limbs quotient = DivideShifted(dividend, divisor);
  return {{std::move(quotient), negative}, {ShiftRight(dividend, shift), a.negative_}};
}

int64_t BigInteger::BitsFrom(size_t shift) const {
  __extension__ using Wide = unsigned __int128;
  Wide out = 0;
  for (size_t i = 0; i < 3; ++i) {
    const size_t limb = shift / kLimbBits + i;
    if (limb < limbs_.size()) out |= Wide{limbs_[limb]} << (kLimbBits * i);
  }
  return static_cast<int64_t>((out >> (shift % kLimbBits)) & ((Wide{1} << kLeadingBits) - 1));
}

// Lehmer's: the quotients of Euclid's algorithm are those of the leading bits for
// as long as their errors do not show, so most of its steps need no long division.
BigInteger BigInteger::Gcd(BigInteger a, BigInteger b) {
  constexpr int64_t kMaxFactor = int64_t{1} << 30;
  a = a.Magnitude();
  b = b.Magnitude();
  if (a < b) std::swap(a, b);
  while (b.NumBits() > kLeadingBits) {
    const size_t shift = a.NumBits() - kLeadingBits;
    int64_t x = a.BitsFrom(shift);
    int64_t y = b.BitsFrom(shift);
    int64_t from_a[2] = {1, 0};
    int64_t from_b[2] = {0, 1};
    while (y + from_a[1] > 0 && y + from_b[1] > 0) {
      const int64_t quotient = (x + from_a[0]) / (y + from_a[1]);
      if (quotient != (x + from_b[0]) / (y + from_b[1]) || quotient > kMaxFactor) break;
      const int64_t next_a = from_a[0] - quotient * from_a[1];
      const int64_t next_b = from_b[0] - quotient * from_b[1];
      if (std::max(std::abs(next_a), std::abs(next_b)) > kMaxFactor) break;
      from_a[0] = std::exchange(from_a[1], next_a);
      from_b[0] = std::exchange(from_b[1], next_b);
      x = std::exchange(y, x - quotient * y);
    }
    BigInteger next;
    if (from_b[0] == 0) {
      next = Divide(a, b).second;
      a = std::move(b);
    } else {
      next = a * BigInteger(from_a[1]) + b * BigInteger(from_b[1]);
      a = a * BigInteger(from_a[0]) + b * BigInteger(from_b[0]);
    }
    b = std::move(next);
  }
  if (b.IsZero()) return a;
  const int64_t small = b.ToInt64().value_or(0);
  return {std::gcd(small, Divide(a, b).second.ToInt64().value_or(0))};
}

std::strong_ordering operator<=>(const BigInteger& a, const BigInteger& b) {
  if (a.negative_ != b.negative_) {
    return a.negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  const int order = BigInteger::CompareLimbs(a.limbs_, b.limbs_);
  return (a.negative_ ? -order : order) <=> 0;
}

}  // namespace pace::equiv
