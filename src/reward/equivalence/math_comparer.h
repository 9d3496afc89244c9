// MathComparer: whether an answer says the same as the right one.
//
// The two sides are not alike. Where the right answer is a bare value, "x = 5"
// counts as 5; where it assigns a name ("x = 5"), a bare 5 counts too; an
// interval counts for an inequality that has it as its solutions, but not an
// inequality for an interval, for a response may repeat the problem's. A list
// counts for a point "(a, b)" in the same order only, a point for a list in any
// order.
//
// A number written with a point is compared to the places that it is written with, but to six
// at least, tiny ones to three digits; all else must agree but for rounding. 28% is 0.28 and,
// for whole numbers, also 28. Residues of different moduli differ.
//
// All calls share a budget of MathEvaluator::kMaxSteps; once it is spent, every comparison
// returns false.
//
// Thread-safety: none.
#ifndef PACE_REWARD_EQUIVALENCE_MATH_COMPARER_H_
#define PACE_REWARD_EQUIVALENCE_MATH_COMPARER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reward/equivalence/math_evaluator.h"
#include "reward/equivalence/math_node.h"
#include "reward/equivalence/real_set.h"

namespace pace::equiv {

class MathComparer {
 public:
  bool IsSame(const MathNodePtr& right, const MathNodePtr& answer);

  int64_t num_steps() const { return evaluator_.num_steps(); }

 private:
  // One "left relation right" of a chain.
  struct Statement {
    MathNodePtr left;
    MathRelation relation = MathRelation::kEqual;
    MathNodePtr right;
  };

  // math_comparer.cc
  // As pace::equiv::StructureOf, remembered.
  const std::string& StructureOf(const MathNodePtr& node);
  bool IsSameExpression(const MathNodePtr& right, const MathNodePtr& answer);
  bool IsSameMatrix(const MathNode& right, const MathNode& answer);

  // math_numbers.cc
  std::optional<bool> CompareNumbers(const MathNodePtr& right, const MathNodePtr& answer);

  // math_collections.cc
  bool IsSameCollection(const MathNodePtr& right, const MathNodePtr& answer);
  bool IsSameInOrder(const std::vector<MathNodePtr>& right, const std::vector<MathNodePtr>& answer);
  bool IsSameInAnyOrder(const std::vector<MathNodePtr>& right,
                        const std::vector<MathNodePtr>& answer);
  // As IsSameInAnyOrder, but each member counts as often as it is written.
  bool IsPermutation(const std::vector<MathNodePtr>& right, std::vector<MathNodePtr> answer);
  // Members that are written alike count once.
  std::vector<MathNodePtr> WithoutRepeats(const std::vector<MathNodePtr>& members);
  // Whether (a, b) can be read as an interval at all: not where b < a.
  bool IsInterval(const MathNode& node);
  std::optional<RealSet> RealSetOf(const MathNodePtr& node);
  std::optional<RealSet> CombinedSetOf(const MathNode& node);
  std::optional<RealSet> FiniteSetOf(const std::vector<MathNodePtr>& members);

  // math_relations.cc
  bool IsSameRelation(const MathNode& right, const MathNode& answer);
  bool IsSameStatement(const Statement& right, const Statement& answer);
  bool HaveSameZeros(const MathNodePtr& right, const MathNodePtr& answer);
  // The constant that `right` is times `answer`; none where it is not constant.
  std::optional<long double> RatioOf(const MathNodePtr& right, const MathNodePtr& answer);
  // What `name` is when the expression is zero, at a point; none where the
  // expression is not linear in it.
  std::optional<Complex> SolveLinear(const MathNode& zero, const std::string& name, size_t point);
  std::optional<RealSet> SolutionsOf(const MathNode& relation);
  std::optional<RealSet> SolutionsOf(const Statement& statement, const std::string& name);

  struct Structure {
    MathNodePtr node;  // keeps the address that the map goes by
    std::string text;
  };

  int depth_ = 0;
  MathEvaluator evaluator_;
  std::unordered_map<const MathNode*, Structure> structures_;
};

// a = b = c, with nothing but equal signs.
bool IsEquation(const MathNode& node);
// An equation that begins with a name, a product of names and the like.
bool IsAssignment(const MathNode& node);
// 5 = 6: two numbers that differ by more than rounding.
bool IsFalseEquation(const MathNode& node);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_MATH_COMPARER_H_
