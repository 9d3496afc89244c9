// Residues in MathEvaluator: what tells 3^{2024} from 3^{2024} - 1, which are too
// long to be exact and too close to differ as reals.
#include "reward/math_evaluator.h"

namespace pace::equiv {
namespace {

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

std::optional<uint64_t> Quotient(uint64_t top, uint64_t bottom) {
  if (bottom == 0) return std::nullopt;
  return Product(top, PowerOf(bottom, kPrime - 2));
}

uint64_t Negative(uint64_t value) {
  return value == 0 ? 0 : kPrime - value;
}

uint64_t ResidueOf(const BigInteger& value) {
  const BigInteger rest =
      BigInteger::Divide(value.Magnitude(), BigInteger(static_cast<int64_t>(kPrime))).second;
  const auto residue = static_cast<uint64_t>(rest.ToInt64().value_or(0));
  return value.IsNegative() ? Negative(residue) : residue;
}

}  // namespace

std::optional<uint64_t> MathEvaluator::Residue(const MathNode& node) {
  constexpr int64_t kSteps = 10;
  if (!Spend(kSteps)) return std::nullopt;
  switch (node.kind) {
    case MathKind::kAdd:
    case MathKind::kMultiply: {
      const bool is_sum = node.kind == MathKind::kAdd;
      uint64_t total = is_sum ? 0 : 1;
      for (const MathNodePtr& arg : node.args) {
        const std::optional<uint64_t> next = Residue(*arg);
        if (!next.has_value()) return std::nullopt;
        total = is_sum ? (total + *next) % kPrime : Product(total, *next);
      }
      return total;
    }
    case MathKind::kNegate: {
      const std::optional<uint64_t> value = Residue(*node.args[0]);
      return value.has_value() ? std::optional<uint64_t>(Negative(*value)) : std::nullopt;
    }
    case MathKind::kDivide: {
      const std::optional<uint64_t> top = Residue(*node.args[0]);
      const std::optional<uint64_t> bottom = Residue(*node.args[1]);
      return top.has_value() && bottom.has_value() ? Quotient(*top, *bottom) : std::nullopt;
    }
    case MathKind::kPower:
      return ResidueOfPower(node);
    case MathKind::kNumber:
    case MathKind::kPercent:
    case MathKind::kFunction: {
      const MaybeRational value = Exact(node);
      if (!value.has_value()) return std::nullopt;
      return Quotient(ResidueOf(value->numerator()), ResidueOf(value->denominator()));
    }
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> MathEvaluator::ResidueOfPower(const MathNode& node) {
  constexpr int64_t kSteps = 50;
  const std::optional<uint64_t> base = Residue(*node.args[0]);
  const MaybeRational power = Exact(*node.args[1]);
  const std::optional<int64_t> exponent = power.has_value() ? power->ToInt64() : std::nullopt;
  if (!base.has_value() || !exponent.has_value() || !Spend(kSteps)) return std::nullopt;
  if (*exponent >= 0) return PowerOf(*base, static_cast<uint64_t>(*exponent));
  return Quotient(1, PowerOf(*base, ~static_cast<uint64_t>(*exponent) + 1));
}

}  // namespace pace::equiv
