// Exact values of MathEvaluator.
#include <utility>

#include "reward/equivalence/math_evaluator.h"

namespace pace::equiv {
namespace {

using Binary = MaybeRational (*)(const Rational&, const Rational&);

MaybeRational Combine(const MaybeRational& a, const MaybeRational& b, Binary operation) {
  return a.has_value() && b.has_value() ? operation(*a, *b) : std::nullopt;
}

// What one sum or product on the way to a value costs.
int64_t StepsToReduce(const Rational& value) {
  constexpr size_t kWordsPerStep = 12;
  const size_t words = value.NumBits() / 32;
  return static_cast<int64_t>(words * words / kWordsPerStep);
}

MaybeRational PowerOf(const Rational& base, const Rational& exponent) {
  const std::optional<int64_t> top = exponent.Numerator().ToInt64();
  const std::optional<int64_t> bottom = exponent.Denominator().ToInt64();
  if (!top.has_value() || !bottom.has_value()) return std::nullopt;
  if (*bottom == 1) return Power(base, *top);
  if (base.IsNegative() && *bottom % 2 == 0) return std::nullopt;
  const MaybeRational root = Root(base.IsNegative() ? Negate(base) : base, *bottom);
  if (!root.has_value()) return std::nullopt;
  return Power(base.IsNegative() ? Negate(*root) : *root, *top);
}

MaybeRational Factorial(const Rational& value) {
  constexpr int64_t kLargest = 300;
  const std::optional<int64_t> n = value.ToInt64();
  if (!n.has_value() || *n < 0 || *n > kLargest) return std::nullopt;
  MaybeRational out = Rational(1);
  for (int64_t i = 2; i <= *n && out.has_value(); ++i) out = Multiply(*out, Rational(i));
  return out;
}

MaybeRational Binomial(const Rational& top, const Rational& bottom) {
  constexpr int64_t kLargest = 500;
  const std::optional<int64_t> n = top.ToInt64();
  const std::optional<int64_t> k = bottom.ToInt64();
  if (!n.has_value() || !k.has_value() || *k < 0 || *n < *k || *n > kLargest) return std::nullopt;
  MaybeRational out = Rational(1);
  for (int64_t i = 0; i < *k; ++i) {
    out = Combine(Combine(out, Rational(*n - i), Multiply), Rational(i + 1), Divide);
  }
  return out;
}

MaybeRational Modulo(const Rational& a, const Rational& b) {
  const MaybeRational ratio = Divide(a, b);
  if (!ratio.has_value()) return std::nullopt;
  return Combine(a, Multiply(b, Floor(*ratio)), Subtract);
}

}  // namespace

MaybeRational MathEvaluator::Exact(const MathNode& node) {
  if (!Spend(1)) return std::nullopt;
  MaybeRational value = ExactUncharged(node);
  if (!value.has_value()) return value;
  // Reducing a fraction takes time quadratic in its length.
  const size_t words = value->NumBits() / 32;
  if (!Spend(static_cast<int64_t>(8 + 2 * words * words))) return std::nullopt;
  return value;
}

MaybeRational MathEvaluator::ExactUncharged(const MathNode& node) {
  switch (node.kind) {
    case MathKind::kNumber:
      return node.number;
    case MathKind::kAdd: {
      MaybeRational sum = Rational(0);
      for (const MathNodePtr& arg : node.args) {
        sum = Combine(sum, Exact(*arg), Add);
        if (!sum.has_value() || !Spend(StepsToReduce(*sum))) return std::nullopt;
      }
      return sum;
    }
    case MathKind::kMultiply: {
      MaybeRational product = Rational(1);
      for (const MathNodePtr& arg : node.args) {
        product = Combine(product, Exact(*arg), Multiply);
        if (!product.has_value() || !Spend(StepsToReduce(*product))) return std::nullopt;
      }
      return product;
    }
    case MathKind::kNegate: {
      const MaybeRational value = Exact(*node.args[0]);
      return value.has_value() ? MaybeRational(Negate(*value)) : std::nullopt;
    }
    case MathKind::kDivide:
      return Combine(Exact(*node.args[0]), Exact(*node.args[1]), Divide);
    case MathKind::kPercent:
      return Combine(Exact(*node.args[0]), Rational(100), Divide);
    case MathKind::kPower:
      return Combine(Exact(*node.args[0]), Exact(*node.args[1]), PowerOf);
    case MathKind::kFunction:
      return ExactFunction(node);
    default:
      return std::nullopt;
  }
}

MaybeRational MathEvaluator::ExactFunction(const MathNode& node) {
  const bool is_known = node.name == "factorial" || node.name == "abs" || node.name == "floor" ||
                        node.name == "ceil" || node.name == "binomial" || node.name == "mod";
  if (!is_known || node.args.empty()) return std::nullopt;
  const MaybeRational first = Exact(*node.args[0]);
  if (!first.has_value() || !Spend(100)) return std::nullopt;
  if (node.name == "binomial" || node.name == "mod") {
    if (node.args.size() != 2) return std::nullopt;
    return Combine(first, Exact(*node.args[1]), node.name == "mod" ? Modulo : Binomial);
  }
  if (node.args.size() != 1) return std::nullopt;
  if (node.name == "factorial") return Factorial(*first);
  if (node.name == "abs") return first->IsNegative() ? Negate(*first) : *first;
  if (node.name == "floor") return Floor(*first);
  return Negate(Floor(Negate(*first)));
}

}  // namespace pace::equiv
