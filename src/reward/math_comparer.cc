#include "reward/math_comparer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pace::equiv {
namespace {

constexpr int kMaxDepth = 60;
constexpr int64_t kComparisonSteps = 10;

// The letters of a word: the name of a symbol, or the letters of a product as
// which "Even" is read.
std::optional<std::string> LettersOf(const MathNode& node) {
  if (node.kind == MathKind::kSymbol) return node.name;
  if (node.kind == MathKind::kEuler) return "e";
  if (node.kind != MathKind::kMultiply) return std::nullopt;
  std::string letters;
  for (const MathNodePtr& arg : node.args) {
    if (arg->kind != MathKind::kSymbol && arg->kind != MathKind::kEuler) return std::nullopt;
    letters += arg->kind == MathKind::kEuler ? "e" : arg->name;
  }
  return letters;
}

bool IsSameWord(const MathNode& right, const MathNode& answer) {
  if (right.kind != MathKind::kSymbol && answer.kind != MathKind::kSymbol) return false;
  const std::optional<std::string> ours = LettersOf(answer);
  return ours.has_value() && ours == LettersOf(right);
}

// The number under signs and percent signs, or null.
const MathNode* NumberIn(const MathNode& node) {
  if (node.kind == MathKind::kNumber) return &node;
  const bool wraps = node.kind == MathKind::kNegate || node.kind == MathKind::kPercent;
  return wraps ? NumberIn(*node.args[0]) : nullptr;
}

bool HasPercent(const MathNode& node) {
  return node.kind == MathKind::kPercent ||
         (node.kind == MathKind::kNegate && HasPercent(*node.args[0]));
}

// value * 10^6, rounded.
MaybeRational Micros(const Rational& value) {
  const MaybeRational scaled = Multiply(value, Rational(1'000'000));
  const MaybeRational half = Divide(Rational(1), Rational(2));
  const MaybeRational raised = scaled ? Add(*scaled, *half) : std::nullopt;
  return raised ? MaybeRational(Floor(*raised)) : std::nullopt;
}

bool IsSameToSixPlaces(long double a, long double b) {
  if (AreClose(a, b)) return true;
  return std::floor(a * 1e6L + 0.5L) == std::floor(b * 1e6L + 0.5L) &&
         std::abs(a - b) * 1000 <= std::max(std::abs(a), std::abs(b));
}

Rational Magnitude(const Rational& value) {
  return value.IsNegative() ? Negate(value) : value;
}

// a = b = c as a = c.
MathNodePtr EndsOf(const MathNode& relation) {
  auto node = std::make_shared<MathNode>(relation);
  node->args = {relation.args.front(), relation.args.back()};
  node->relations = {MathRelation::kEqual};
  return node;
}

// x^2 + y = 0: the zero is no answer. x = 0, a + b = 0 and f(3) = 0 give one.
bool IsZeroForm(const MathNode& relation) {
  const MathNode& left = *relation.args.front();
  const MathNode& right = *relation.args.back();
  return right.kind == MathKind::kNumber && right.number.IsZero() && !IsNamesOnly(left) &&
         left.kind != MathKind::kCall && !FreeNames(left).empty();
}

// Whether two numbers are written in different bases: 52_8 and 52_9.
bool AreInDifferentBases(const MathNode* one, const MathNode* other) {
  return one != nullptr && other != nullptr && !one->name.empty() && !other->name.empty() &&
         one->name != other->name;
}

// Six places tell nothing of numbers that have none of them.
bool IsNearEnough(const Rational& a, const Rational& b) {
  const MaybeRational difference = Subtract(a, b);
  const MaybeRational thousandfold =
      difference ? Multiply(*difference, Rational(difference->IsNegative() ? -1000 : 1000))
                 : std::nullopt;
  return thousandfold &&
         (!IsLess(Magnitude(a), *thousandfold) || !IsLess(Magnitude(b), *thousandfold));
}

}  // namespace

bool IsEquation(const MathNode& node) {
  return node.kind == MathKind::kRelation &&
         std::all_of(node.relations.begin(), node.relations.end(),
                     [](MathRelation relation) { return relation == MathRelation::kEqual; });
}

bool IsAssignment(const MathNode& node) {
  return IsEquation(node) && IsNamesOnly(*node.args[0]);
}

bool MathComparer::IsSame(const MathNodePtr& right_node, const MathNodePtr& answer_node) {
  if (!evaluator_.Spend(kComparisonSteps) || depth_ > kMaxDepth) return false;
  MathNodePtr right = right_node;
  MathNodePtr answer = answer_node;
  const bool right_is_equation = IsEquation(*right);
  const bool answer_is_equation = IsEquation(*answer);
  const bool right_assigns = IsAssignment(*right);
  if (right_assigns) right = EndsOf(*right);
  if (IsAssignment(*answer)) answer = EndsOf(*answer);
  if (answer_is_equation && !right_is_equation && !IsZeroForm(*answer)) {
    answer = answer->args.back();
  } else if (right_assigns && answer->kind != MathKind::kRelation) {
    right = right->args.back();
  }
  const std::string& structure = StructureOf(right);
  if (!structure.empty() && structure == StructureOf(answer)) return true;
  ++depth_;
  bool same = false;
  const bool right_is_relation = right->kind == MathKind::kRelation;
  const bool answer_is_relation = answer->kind == MathKind::kRelation;
  if (right_is_relation && answer_is_relation) {
    same = IsSameRelation(*right, *answer);
  } else if (right_is_relation && IsCollection(*answer)) {
    const std::optional<RealSet> solutions = RealSetOf(right);
    const std::optional<RealSet> ours = RealSetOf(answer);
    same = solutions.has_value() && ours.has_value() && solutions->IsSame(*ours);
  } else if (right_is_relation || answer_is_relation) {
    same = false;
  } else if (IsCollection(*right) || IsCollection(*answer)) {
    same = IsSameCollection(right, answer);
  } else if (right->kind == MathKind::kMatrix || answer->kind == MathKind::kMatrix) {
    same = IsSameMatrix(*right, *answer);
  } else {
    same = IsSameWord(*right, *answer) || IsSameExpression(right, answer);
  }
  --depth_;
  return same;
}

const std::string& MathComparer::StructureOf(const MathNodePtr& node) {
  constexpr int64_t kBytesPerStep = 4;
  const auto found = structures_.find(node.get());
  if (found != structures_.end()) return found->second.text;
  std::string text = equiv::StructureOf(*node);
  evaluator_.Spend(kComparisonSteps + static_cast<int64_t>(text.size()) / kBytesPerStep);
  return structures_.emplace(node.get(), Structure{node, std::move(text)}).first->second.text;
}

bool MathComparer::IsSameMatrix(const MathNode& right, const MathNode& answer) {
  return right.kind == answer.kind && right.num_columns == answer.num_columns &&
         IsSameInOrder(right.args, answer.args);
}

// Rules for numbers as they are written; none where they do not apply.
std::optional<bool> MathComparer::CompareNumbers(const MathNodePtr& right,
                                                 const MathNodePtr& answer) {
  const MathNode* right_number = NumberIn(*right);
  const MathNode* our_number = NumberIn(*answer);
  if (AreInDifferentBases(right_number, our_number)) return false;
  const bool right_is_decimal = right_number != nullptr && right_number->is_decimal;
  const bool ours_is_decimal = our_number != nullptr && our_number->is_decimal;
  if (right_is_decimal || ours_is_decimal) {
    const MaybeRational& a = evaluator_.Of(right).exact;
    const MaybeRational& b = evaluator_.Of(answer).exact;
    if (a.has_value() && b.has_value()) {
      const MaybeRational rounded = Micros(*a);
      if (rounded.has_value()) return rounded == Micros(*b) && IsNearEnough(*a, *b);
    }
    const std::optional<long double> x = evaluator_.RealOf(right);
    const std::optional<long double> y = evaluator_.RealOf(answer);
    if (x.has_value() && y.has_value() && std::isfinite(*x) && std::isfinite(*y)) {
      return IsSameToSixPlaces(*x, *y);
    }
    return std::nullopt;
  }
  const bool has_percent = HasPercent(*right) != HasPercent(*answer);
  if (!has_percent || right_number == nullptr || our_number == nullptr) return std::nullopt;
  if (!right_number->number.IsInteger() || !our_number->number.IsInteger()) return std::nullopt;
  if (right_number->number == our_number->number) return true;
  return std::nullopt;
}

bool MathComparer::IsSameExpression(const MathNodePtr& right, const MathNodePtr& answer) {
  const std::optional<bool> as_written = CompareNumbers(right, answer);
  if (as_written.has_value()) return *as_written;
  const MathEvaluator::Values& a = evaluator_.Of(right);
  const MathEvaluator::Values& b = evaluator_.Of(answer);
  if (a.exact.has_value() && b.exact.has_value()) return *a.exact == *b.exact;
  if (a.is_constant && b.is_constant) {
    const std::optional<uint64_t> residue = evaluator_.Residue(*right);
    const std::optional<uint64_t> ours = evaluator_.Residue(*answer);
    if (residue.has_value() && ours.has_value() && residue != ours) return false;
  }
  constexpr size_t kMinPoints = 3;
  size_t num_points = 0;
  for (size_t point = 0; point < MathEvaluator::kNumPoints; ++point) {
    if (!IsFinite(a.at[point]) || !IsFinite(b.at[point])) continue;
    if (!AreClose(a.at[point], b.at[point])) return false;
    ++num_points;
  }
  return num_points >= kMinPoints;
}

}  // namespace pace::equiv
