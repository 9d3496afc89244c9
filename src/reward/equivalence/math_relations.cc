// Equations and inequalities in MathComparer.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reward/equivalence/math_comparer.h"

namespace pace::equiv {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

MathRelation Mirrored(MathRelation relation) {
  switch (relation) {
    case MathRelation::kLess:
      return MathRelation::kGreater;
    case MathRelation::kLessEqual:
      return MathRelation::kGreaterEqual;
    case MathRelation::kGreater:
      return MathRelation::kLess;
    case MathRelation::kGreaterEqual:
      return MathRelation::kLessEqual;
    default:
      return relation;
  }
}

bool IsOrder(MathRelation relation) {
  return relation != MathRelation::kEqual && relation != MathRelation::kUnequal;
}

MathNodePtr Difference(const MathNodePtr& left, const MathNodePtr& right) {
  return MakeSum({left, MakeNegation(right)});
}

bool Holds(long double value, MathRelation relation) {
  switch (relation) {
    case MathRelation::kEqual:
      return value == 0;
    case MathRelation::kUnequal:
      return value != 0;
    case MathRelation::kLess:
      return value < 0;
    case MathRelation::kLessEqual:
      return value <= 0;
    case MathRelation::kGreater:
      return value > 0;
    case MathRelation::kGreaterEqual:
      return value >= 0;
  }
  return false;
}

// Where a x^2 + b x + c has the sign that the relation asks for.
RealSet QuadraticSolutions(long double a, long double b, long double c, MathRelation relation) {
  std::vector<long double> roots;
  if (a == 0) {
    if (b == 0) return Holds(c, relation) ? RealSet::Everything() : RealSet();
    roots = {-c / b};
  } else {
    const long double root = b * b - 4 * a * c;
    if (AreClose(b * b, 4 * a * c)) {
      roots = {-b / (2 * a)};
    } else if (root > 0) {
      roots = {(-b - std::sqrt(root)) / (2 * a), (-b + std::sqrt(root)) / (2 * a)};
      std::sort(roots.begin(), roots.end());
    }
  }
  std::vector<RealInterval> pieces;
  long double low = -kInfinity;
  for (size_t i = 0; i <= roots.size(); ++i) {
    const long double high = i < roots.size() ? roots[i] : kInfinity;
    const long double inside = std::isinf(low) && std::isinf(high) ? 0
                               : std::isinf(low)                   ? high - 1
                               : std::isinf(high)                  ? low + 1
                                                                   : (low + high) / 2;
    if (Holds(a * inside * inside + b * inside + c, relation)) {
      pieces.push_back({low, high, true, true});
    }
    if (i < roots.size() && Holds(0, relation)) pieces.push_back({high, high, false, false});
    low = high;
  }
  return RealSet(std::move(pieces));
}

}  // namespace

bool MathComparer::IsSameRelation(const MathNode& right, const MathNode& answer) {
  const size_t size = right.relations.size();
  if (size == answer.relations.size()) {
    bool same = true;
    bool mirrored = true;
    for (size_t i = 0; i < size; ++i) {
      const Statement wanted = {right.args[i], right.relations[i], right.args[i + 1]};
      const Statement given = {answer.args[i], answer.relations[i], answer.args[i + 1]};
      const size_t j = size - 1 - i;
      const Statement turned = {answer.args[j + 1], Mirrored(answer.relations[j]), answer.args[j]};
      same = same && IsSameStatement(wanted, given);
      mirrored = mirrored && IsSameStatement(wanted, turned);
    }
    if (same || mirrored) return true;
  }
  const std::optional<RealSet> solutions = SolutionsOf(right);
  const std::optional<RealSet> ours = SolutionsOf(answer);
  return solutions.has_value() && ours.has_value() && FreeNames(right) == FreeNames(answer) &&
         solutions->IsSame(*ours);
}

bool MathComparer::IsSameStatement(const Statement& right, const Statement& answer) {
  constexpr int64_t kSteps = 100;
  if (!evaluator_.Spend(kSteps)) return false;
  if (right.relation == answer.relation && IsSame(right.left, answer.left) &&
      IsSame(right.right, answer.right)) {
    return true;
  }
  for (const MathNodePtr& side : {right.left, right.right, answer.left, answer.right}) {
    if (IsCollection(*side) || side->kind == MathKind::kMatrix) return false;
  }
  const MathNodePtr wanted = Difference(right.left, right.right);
  const MathNodePtr given = Difference(answer.left, answer.right);
  if (!IsOrder(right.relation)) {
    return right.relation == answer.relation && HaveSameZeros(wanted, given);
  }
  const std::optional<long double> ratio = RatioOf(wanted, given);
  if (!ratio.has_value()) return false;
  return answer.relation == (*ratio > 0 ? right.relation : Mirrored(right.relation));
}

std::optional<long double> MathComparer::RatioOf(const MathNodePtr& right,
                                                 const MathNodePtr& answer) {
  constexpr long double kTiny = 1e-12L;
  constexpr size_t kMinPoints = 3;
  if (FreeNames(*right).empty()) return std::nullopt;
  const MathEvaluator::Values& a = evaluator_.Of(right);
  const MathEvaluator::Values& b = evaluator_.Of(answer);
  std::optional<Complex> ratio;
  size_t num_points = 0;
  for (size_t point = 0; point < MathEvaluator::kNumPoints; ++point) {
    if (!IsFinite(a.at[point]) || !IsFinite(b.at[point])) continue;
    const bool zero = std::abs(a.at[point]) < kTiny;
    if (zero != (std::abs(b.at[point]) < kTiny)) return std::nullopt;
    if (zero) continue;
    const Complex here = a.at[point] / b.at[point];
    if (ratio.has_value() && !AreClose(*ratio, here)) return std::nullopt;
    ratio = here;
    ++num_points;
  }
  if (num_points < kMinPoints || std::abs(ratio->imag()) > kTiny) return std::nullopt;
  return ratio->real();
}

bool MathComparer::HaveSameZeros(const MathNodePtr& right, const MathNodePtr& answer) {
  if (RatioOf(right, answer).has_value()) return true;
  const std::vector<std::string> names = FreeNames(*right);
  if (names.empty() || names != FreeNames(*answer)) return false;
  for (const std::string& name : names) {
    bool same = true;
    for (size_t point = 0; point < MathEvaluator::kNumPoints && same; ++point) {
      const std::optional<Complex> wanted = SolveLinear(*right, name, point);
      const std::optional<Complex> given = SolveLinear(*answer, name, point);
      same = wanted.has_value() && given.has_value() && AreClose(*wanted, *given);
    }
    if (same) return true;
  }
  return false;
}

std::optional<Complex> MathComparer::SolveLinear(const MathNode& zero, const std::string& name,
                                                 size_t point) {
  const auto at = [&](long double value) {
    return evaluator_.At(zero, point, {{name, Complex(value)}});
  };
  const Complex origin = at(0);
  const Complex slope = at(1) - origin;
  if (!IsFinite(slope) || slope == Complex(0)) return std::nullopt;
  for (const long double x : {2.7L, -1.3L}) {
    if (!AreClose(at(x), origin + x * slope)) return std::nullopt;
  }
  return -origin / slope;
}

std::optional<RealSet> MathComparer::SolutionsOf(const MathNode& relation) {
  const std::vector<std::string> names = FreeNames(relation);
  if (names.size() != 1) return std::nullopt;
  std::optional<RealSet> out = RealSet::Everything();
  for (size_t i = 0; i < relation.relations.size() && out.has_value(); ++i) {
    const Statement statement = {relation.args[i], relation.relations[i], relation.args[i + 1]};
    const std::optional<RealSet> part = SolutionsOf(statement, names[0]);
    out = part.has_value() ? std::optional<RealSet>(out->Intersection(*part)) : std::nullopt;
  }
  return out;
}

std::optional<RealSet> MathComparer::SolutionsOf(const Statement& statement,
                                                 const std::string& name) {
  if (IsCollection(*statement.right)) {
    const bool is_name =
        FreeNames(*statement.left) == std::vector<std::string>{name} &&
        (statement.left->kind == MathKind::kSymbol || statement.left->kind == MathKind::kCall);
    const std::optional<RealSet> inside =
        is_name ? RealSetOf(statement.right) : std::optional<RealSet>();
    if (!inside.has_value() || IsOrder(statement.relation)) return std::nullopt;
    return statement.relation == MathRelation::kEqual ? *inside : inside->Complement();
  }
  const MathNodePtr zero = Difference(statement.left, statement.right);
  bool real = true;
  const auto at = [&](long double x) {
    const Complex value = evaluator_.At(*zero, 0, {{name, Complex(x)}});
    real = real && IsFinite(value) && value.imag() == 0;
    return value.real();
  };
  const long double c = at(0);
  const long double sum = at(1) - c;
  const long double difference = at(-1) - c;
  long double a = (sum + difference) / 2;
  const long double b = (sum - difference) / 2;
  const long double scale = std::abs(a) + std::abs(b) + std::abs(c);
  if (std::abs(a) <= 1e-15L * scale) a = 0;
  const bool fits = AreClose(at(3) + scale, 9 * a + 3 * b + c + scale) &&
                    AreClose(at(-2.5L) + scale, 6.25L * a - 2.5L * b + c + scale);
  if (!real || !fits) return std::nullopt;
  return QuadraticSolutions(a, b, c, statement.relation);
}

}  // namespace pace::equiv
