#include "reward/equivalence/math_comparer.h"

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

// "dog" is read as a product of three names, but so is "god": letters that make a
// word keep their order.
bool AreDifferentWords(const MathNode& one, const MathNode& other) {
  constexpr size_t kMinLetters = 3;
  const auto is_word = [](const MathNode& node, const std::optional<std::string>& letters) {
    return node.kind == MathKind::kMultiply && letters.has_value() &&
           letters->size() >= kMinLetters && letters->size() == node.args.size() &&
           letters->find_first_of("aeiou") != std::string::npos;
  };
  const std::optional<std::string> wanted = LettersOf(one);
  const std::optional<std::string> given = LettersOf(other);
  return is_word(one, wanted) && is_word(other, given) && wanted != given;
}

// The modulus of 9 \pmod{11} and x = 9 \bmod 11, as text; "" where there is none.
std::string ModulusOf(const MathNode& node) {
  if (node.kind == MathKind::kCongruence) return node.name;
  if (node.kind == MathKind::kRelation) return ModulusOf(*node.args.back());
  const bool is_residue = node.kind == MathKind::kFunction && node.name == "mod";
  if (!is_residue || node.args[1]->kind != MathKind::kNumber) return "";
  const std::optional<int64_t> modulus = node.args[1]->number.ToInt64();
  return modulus.has_value() ? std::to_string(*modulus) : "";
}

// What is congruent: of 129^{34} = 9 \pmod{11} the 9, for the rest is no equation.
MathNodePtr InsideOf(const MathNodePtr& node) {
  if (node->kind != MathKind::kCongruence) return node;
  const MathNodePtr& inside = node->args[0];
  return IsEquation(*inside) && FreeNames(*inside).empty() ? inside->args.back() : inside;
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

// x + 3 = 5 is to be solved yet: the 5 is no answer.
bool IsUnsolved(const MathNode& relation) {
  const MathNode& left = *relation.args.front();
  return left.kind == MathKind::kAdd && FreeNames(left).size() == 1 &&
         std::any_of(left.args.begin(), left.args.end(),
                     [](const MathNodePtr& term) { return FreeNames(*term).empty(); });
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
  MathNodePtr right = InsideOf(right_node);
  MathNodePtr answer = InsideOf(answer_node);
  if (right != right_node || answer != answer_node) {
    const std::string modulus = ModulusOf(*right_node);
    const std::string ours = ModulusOf(*answer_node);
    if (!modulus.empty() && !ours.empty() && modulus != ours) return false;
    return IsSame(right, answer);
  }
  const bool right_is_equation = IsEquation(*right);
  const bool answer_is_equation = IsEquation(*answer);
  const bool right_assigns = IsAssignment(*right);
  if (right_assigns) right = EndsOf(*right);
  if (IsAssignment(*answer)) answer = EndsOf(*answer);
  if (answer_is_equation && !right_is_equation && !IsZeroForm(*answer)) {
    if (IsFalseEquation(*answer) || IsUnsolved(*answer)) return false;
    answer = answer->args.back();
  } else if (right_assigns && answer->kind != MathKind::kRelation) {
    right = right->args.back();
  }
  if (AreDifferentWords(*right, *answer)) return false;
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

bool MathComparer::IsSameExpression(const MathNodePtr& right, const MathNodePtr& answer) {
  const std::optional<bool> as_written = CompareNumbers(right, answer);
  if (as_written.has_value()) return *as_written;
  const MathEvaluator::Values& a = evaluator_.Of(right);
  const MathEvaluator::Values& b = evaluator_.Of(answer);
  if (a.exact.has_value() && b.exact.has_value()) return *a.exact == *b.exact;
  const std::optional<MathEvaluator::Residue> residue = evaluator_.ResidueAt(*right);
  const std::optional<MathEvaluator::Residue> ours = evaluator_.ResidueAt(*answer);
  if (residue.has_value() && ours.has_value() && residue != ours) return false;
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
