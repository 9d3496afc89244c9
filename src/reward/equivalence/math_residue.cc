// Residues in MathEvaluator: what tells 3^{2024} from 3^{2024} - 1, which are too
// long to be exact and too close to differ as reals, and x + 10^{-13} from x.
//
// Values are taken in the field of p^2 elements: a + b i with a and b modulo the prime
// p = 2^61 - 1, of which -1 has no root. Names, pi and e become fixed elements, as if
// nothing were known of them, and square roots of whole numbers products of roots of
// their prime factors. Sums and products keep their meaning in it.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "reward/equivalence/math_evaluator.h"

namespace pace::equiv {
namespace {

using Residue = MathEvaluator::Residue;

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

uint64_t Product(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{a} * b % kPrime);
}

uint64_t PowerOf(uint64_t base, uint64_t exponent) {
  uint64_t out = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) out = Product(out, base);
    base = Product(base, base);
  }
  return out;
}

uint64_t Sum(uint64_t a, uint64_t b) {
  return (a + b) % kPrime;
}

uint64_t Negative(uint64_t value) {
  return value == 0 ? 0 : kPrime - value;
}

Residue Sum(Residue a, Residue b) {
  return {Sum(a.real, b.real), Sum(a.imaginary, b.imaginary)};
}

Residue Product(Residue a, Residue b) {
  return {Sum(Product(a.real, b.real), Negative(Product(a.imaginary, b.imaginary))),
          Sum(Product(a.real, b.imaginary), Product(a.imaginary, b.real))};
}

Residue PowerOf(Residue base, uint64_t exponent) {
  Residue out = {1, 0};
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) out = Product(out, base);
    base = Product(base, base);
  }
  return out;
}

std::optional<Residue> Quotient(Residue top, Residue bottom) {
  const uint64_t norm =
      Sum(Product(bottom.real, bottom.real), Product(bottom.imaginary, bottom.imaginary));
  if (norm == 0) return std::nullopt;
  const uint64_t inverse = PowerOf(norm, kPrime - 2);
  const Residue turned = {bottom.real, Negative(bottom.imaginary)};
  return Product(Product(top, turned), Residue{inverse, 0});
}

Residue ResidueOfInteger(const Rational& value) {
  return {value.Modulo(kPrime), 0};
}

std::optional<Residue> ResidueOf(const Rational& value) {
  return Quotient(ResidueOfInteger(value.Numerator()), ResidueOfInteger(value.Denominator()));
}

// One of the two roots, always the same.
Residue RootOfResidue(uint64_t value) {
  const uint64_t root = PowerOf(value, (kPrime + 1) / 4);
  if (Product(root, root) == value) return {root, 0};
  return {0, root};
}

const std::vector<int64_t>& SmallPrimes() {
  static const std::vector<int64_t> primes = [] {
    constexpr int64_t kLargest = 1000;
    std::vector<int64_t> found;
    for (int64_t n = 2; n <= kLargest; ++n) {
      const bool is_prime =
          std::none_of(found.begin(), found.end(), [n](int64_t prime) { return n % prime == 0; });
      if (is_prime) found.push_back(n);
    }
    return found;
  }();
  return primes;
}

// The root of an integer > 0, the product of the roots of its factors.
Residue RootOfInteger(Rational value) {
  Residue out = {1, 0};
  for (const int64_t prime : SmallPrimes()) {
    const std::optional<int64_t> small = value.ToInt64();
    if (small.has_value() && *small < prime * prime) break;
    const auto divisor = static_cast<uint64_t>(prime);
    while (value.Modulo(divisor) == 0) {
      out = Product(out, RootOfResidue(divisor));
      value = Divide(value, Rational(prime)).value_or(Rational(1));
    }
  }
  const MaybeRational exact = Root(value, 2);
  if (exact.has_value()) return Product(out, ResidueOfInteger(*exact));
  return Product(out, RootOfResidue(value.Modulo(kPrime)));
}

// sqrt(a/b) = sqrt(ab) / b; none for numbers of too many bits, and for zero.
std::optional<Residue> RootOf(const Rational& value) {
  constexpr size_t kMaxBits = 256;
  const Rational size = value.IsNegative() ? Negate(value) : value;
  const MaybeRational inside = Multiply(size.Numerator(), size.Denominator());
  // One bit is the denominator's.
  if (!inside || inside->IsZero() || inside->NumBits() > kMaxBits + 1) return std::nullopt;
  Residue root = RootOfInteger(*inside);
  if (value.IsNegative()) root = Product(root, {0, 1});
  return Quotient(root, ResidueOfInteger(value.Denominator()));
}

std::optional<Residue> SignedPower(Residue base, int64_t exponent) {
  if (exponent >= 0) return PowerOf(base, static_cast<uint64_t>(exponent));
  return Quotient({1, 0}, PowerOf(base, ~static_cast<uint64_t>(exponent) + 1));
}

// The element that stands for a name.
Residue ElementOf(std::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return {hash % kPrime, 0};
}

}  // namespace

std::optional<Residue> MathEvaluator::ResidueAt(const MathNode& node) {
  constexpr int64_t kSteps = 10;
  if (!Spend(kSteps)) return std::nullopt;
  switch (node.kind) {
    case MathKind::kAdd:
    case MathKind::kMultiply: {
      const bool is_sum = node.kind == MathKind::kAdd;
      Residue total = {is_sum ? uint64_t{0} : uint64_t{1}, 0};
      for (const MathNodePtr& arg : node.args) {
        const std::optional<Residue> next = ResidueAt(*arg);
        if (!next.has_value()) return std::nullopt;
        total = is_sum ? Sum(total, *next) : Product(total, *next);
      }
      return total;
    }
    case MathKind::kNegate: {
      const std::optional<Residue> value = ResidueAt(*node.args[0]);
      if (!value.has_value()) return std::nullopt;
      return Product(*value, {kPrime - 1, 0});
    }
    case MathKind::kDivide: {
      const std::optional<Residue> top = ResidueAt(*node.args[0]);
      const std::optional<Residue> bottom = ResidueAt(*node.args[1]);
      return top.has_value() && bottom.has_value() ? Quotient(*top, *bottom) : std::nullopt;
    }
    case MathKind::kPower:
      return ResidueOfPower(node);
    case MathKind::kSymbol:
      return node.name == "i" ? Residue{0, 1} : ElementOf(node.name);
    case MathKind::kPi:
      return ElementOf("\\pi");
    case MathKind::kEuler:
      return ElementOf("\\e");
    case MathKind::kFunction:
      if (node.name == "factorial") return ResidueOfFactorial(*node.args[0]);
      [[fallthrough]];
    case MathKind::kNumber:
    case MathKind::kPercent: {
      const MaybeRational value = Exact(node);
      return value.has_value() ? ResidueOf(*value) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<Residue> MathEvaluator::ResidueOfPower(const MathNode& node) {
  constexpr int64_t kSteps = 50;
  constexpr int64_t kRootSteps = 500;
  const MaybeRational power = Exact(*node.args[1]);
  if (!power.has_value() || !Spend(kSteps)) return std::nullopt;
  const std::optional<int64_t> exponent = power->ToInt64();
  if (exponent.has_value()) {
    const std::optional<Residue> base = ResidueAt(*node.args[0]);
    return base.has_value() ? SignedPower(*base, *exponent) : std::nullopt;
  }
  const MaybeRational doubled = Multiply(*power, Rational(2));
  const MaybeRational base = Exact(*node.args[0]);
  if (!doubled.has_value() || !base.has_value() || !Spend(kRootSteps)) return std::nullopt;
  const std::optional<Residue> root = RootOf(*base);
  const int64_t halves = doubled->ToInt64().value_or(0);
  return root.has_value() && halves != 0 ? SignedPower(*root, halves) : std::nullopt;
}

std::optional<Residue> MathEvaluator::ResidueOfFactorial(const MathNode& argument) {
  constexpr int64_t kLargest = 5000;
  const MaybeRational value = Exact(argument);
  const std::optional<int64_t> n = value.has_value() ? value->ToInt64() : std::nullopt;
  if (!n.has_value() || *n < 0 || *n > kLargest || !Spend(*n)) return std::nullopt;
  uint64_t out = 1;
  for (int64_t i = 2; i <= *n; ++i) out = Product(out, static_cast<uint64_t>(i));
  return Residue{out, 0};
}

}  // namespace pace::equiv
