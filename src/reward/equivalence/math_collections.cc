// Collections in MathComparer: points, intervals, sets.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "reward/equivalence/math_comparer.h"

namespace pace::equiv {
namespace {

bool IsOpen(const MathNode& tuple) {
  return tuple.open == '(' && tuple.close == ')';
}

// The members of nested unions.
void FlattenUnion(const MathNodePtr& node, std::vector<MathNodePtr>& out) {
  if (node->kind != MathKind::kUnion) {
    out.push_back(node);
    return;
  }
  for (const MathNodePtr& arg : node->args) FlattenUnion(arg, out);
}

std::string WithoutSubscript(const std::string& name) {
  return name.substr(0, name.find('_'));
}

// The values of a list that gives each to another name, x = 3, y = 4: as a point would
// list them, x before y. None for any other list; the roots x_1 = 3, x_2 = 4 have no order.
std::optional<std::vector<MathNodePtr>> ValuesByName(const MathNode& list) {
  if (list.kind != MathKind::kSet || list.args.size() < 2) return std::nullopt;
  std::vector<std::pair<std::string, MathNodePtr>> values;
  std::set<std::string> names;
  bool are_coordinates = true;
  for (const MathNodePtr& member : list.args) {
    if (!IsEquation(*member) || member->args[0]->kind != MathKind::kSymbol) return std::nullopt;
    const std::string name = WithoutSubscript(member->args[0]->name);
    if (!names.insert(name).second) return std::nullopt;
    are_coordinates = are_coordinates && (name == "x" || name == "y" || name == "z");
    values.emplace_back(name, member->args.back());
  }
  if (are_coordinates) {
    std::sort(values.begin(), values.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  std::vector<MathNodePtr> out;
  for (auto& [name, value] : values) out.push_back(std::move(value));
  return out;
}

bool HasRelation(const MathNode& list) {
  return std::any_of(list.args.begin(), list.args.end(),
                     [](const MathNodePtr& member) { return member->kind == MathKind::kRelation; });
}

}  // namespace

bool MathComparer::IsInterval(const MathNode& node) {
  if (node.kind != MathKind::kTuple || node.args.size() != 2) return false;
  for (const MathNodePtr& arg : node.args) {
    if (IsCollection(*arg) || arg->kind == MathKind::kRelation) return false;
  }
  const bool closed = node.open == '[' && node.close == ']';
  if (!IsOpen(node) && !closed) return true;
  const std::optional<long double> low = evaluator_.RealOf(node.args[0]);
  const std::optional<long double> high = evaluator_.RealOf(node.args[1]);
  if (!low.has_value() || !high.has_value()) return true;
  return closed ? *low <= *high : *low < *high;
}

bool MathComparer::IsSameInOrder(const std::vector<MathNodePtr>& right,
                                 const std::vector<MathNodePtr>& answer) {
  if (right.size() != answer.size()) return false;
  for (size_t i = 0; i < right.size(); ++i) {
    if (!IsSame(right[i], answer[i])) return false;
  }
  return true;
}

std::vector<MathNodePtr> MathComparer::WithoutRepeats(const std::vector<MathNodePtr>& members) {
  std::vector<MathNodePtr> out;
  std::set<std::string_view> seen;
  for (const MathNodePtr& member : members) {
    const std::string& structure = StructureOf(member);
    if (structure.empty() || seen.insert(structure).second) out.push_back(member);
  }
  return out;
}

bool MathComparer::IsSameInAnyOrder(const std::vector<MathNodePtr>& right,
                                    const std::vector<MathNodePtr>& answer) {
  std::vector<MathNodePtr> wanted = WithoutRepeats(right);
  std::vector<MathNodePtr> left_over = WithoutRepeats(answer);
  if (wanted.size() != left_over.size()) return false;
  // Those written alike need no comparison; long lists have few others.
  std::set<std::string_view> ours;
  for (const MathNodePtr& member : left_over) ours.insert(StructureOf(member));
  std::set<std::string_view> alike;
  std::erase_if(wanted, [&](const MathNodePtr& member) {
    const std::string& structure = StructureOf(member);
    if (structure.empty() || !ours.contains(structure)) return false;
    alike.insert(structure);
    return true;
  });
  std::erase_if(left_over,
                [&](const MathNodePtr& member) { return alike.contains(StructureOf(member)); });
  for (const MathNodePtr& member : wanted) {
    const auto found =
        std::find_if(left_over.begin(), left_over.end(),
                     [this, &member](const MathNodePtr& other) { return IsSame(member, other); });
    if (found == left_over.end()) return false;
    left_over.erase(found);
  }
  return true;
}

bool MathComparer::IsPermutation(const std::vector<MathNodePtr>& right,
                                 std::vector<MathNodePtr> answer) {
  if (right.size() != answer.size()) return false;
  for (const MathNodePtr& member : right) {
    const auto found =
        std::find_if(answer.begin(), answer.end(),
                     [this, &member](const MathNodePtr& other) { return IsSame(member, other); });
    if (found == answer.end()) return false;
    answer.erase(found);
  }
  return true;
}

bool MathComparer::IsSameCollection(const MathNodePtr& right, const MathNodePtr& answer) {
  const bool right_is_set = right->kind == MathKind::kSet;
  const bool ours_is_set = answer->kind == MathKind::kSet;
  const bool right_is_tuple = right->kind == MathKind::kTuple;
  const bool ours_is_tuple = answer->kind == MathKind::kTuple;
  // A set of one and its member are the same.
  if (!IsCollection(*right) || !IsCollection(*answer)) {
    const MathNodePtr& set = IsCollection(*right) ? right : answer;
    if (set->kind != MathKind::kSet || WithoutRepeats(set->args).size() != 1) return false;
    return IsCollection(*right) ? IsSame(set->args[0], answer) : IsSame(right, set->args[0]);
  }
  const bool right_is_interval = right_is_tuple && IsInterval(*right);
  const bool ours_is_interval = ours_is_tuple && IsInterval(*answer);
  if (right_is_interval && ours_is_interval) {
    return right->open == answer->open && right->close == answer->close &&
           IsSameInOrder(right->args, answer->args);
  }
  // An open interval may have been meant as a point; any other may not.
  const bool right_may_be_list = !right_is_interval || IsOpen(*right);
  const bool ours_may_be_list = !ours_is_interval || IsOpen(*answer);
  if (right_may_be_list && ours_may_be_list) {
    const std::optional<std::vector<MathNodePtr>> wanted = ValuesByName(*right);
    const std::optional<std::vector<MathNodePtr>> given = ValuesByName(*answer);
    if (wanted.has_value() && (ours_is_tuple || (ours_is_set && !HasRelation(*answer)))) {
      return IsSameInOrder(*wanted, answer->args);
    }
    if (right_is_tuple && (ours_is_tuple || ours_is_set)) {
      return IsSameInOrder(right->args, given.has_value() ? *given : answer->args);
    }
    if (right_is_set && ours_is_tuple) return IsPermutation(right->args, answer->args);
    if (right_is_set && ours_is_set) return IsSameInAnyOrder(right->args, answer->args);
  }
  const std::optional<RealSet> solutions = RealSetOf(right);
  const std::optional<RealSet> ours = RealSetOf(answer);
  if (solutions.has_value() && ours.has_value()) return solutions->IsSame(*ours);
  if (right->kind != MathKind::kUnion || answer->kind != MathKind::kUnion) {
    return right->kind == answer->kind && !right_is_tuple && right->name == answer->name &&
           IsSameInOrder(right->args, answer->args);
  }
  std::vector<MathNodePtr> wanted;
  std::vector<MathNodePtr> given;
  FlattenUnion(right, wanted);
  FlattenUnion(answer, given);
  return IsSameInAnyOrder(wanted, given);
}

std::optional<RealSet> MathComparer::FiniteSetOf(const std::vector<MathNodePtr>& members) {
  std::vector<RealInterval> points;
  for (const MathNodePtr& member : members) {
    const std::optional<long double> value = evaluator_.RealOf(member);
    if (!value.has_value()) return std::nullopt;
    points.push_back({*value, *value, false, false});
  }
  return RealSet(std::move(points));
}

std::optional<RealSet> MathComparer::RealSetOf(const MathNodePtr& node) {
  switch (node->kind) {
    case MathKind::kRelation:
      return SolutionsOf(*node);
    case MathKind::kSet:
      return FiniteSetOf(node->args);
    case MathKind::kNamedSet:
      return node->name == "R" ? std::optional<RealSet>(RealSet::Everything()) : std::nullopt;
    case MathKind::kTuple: {
      if (!IsInterval(*node)) return std::nullopt;
      const std::optional<long double> low = evaluator_.RealOf(node->args[0]);
      const std::optional<long double> high = evaluator_.RealOf(node->args[1]);
      if (!low.has_value() || !high.has_value()) return std::nullopt;
      return RealSet({{*low, *high, node->open == '(', node->close == ')'}});
    }
    case MathKind::kUnion:
    case MathKind::kIntersection:
    case MathKind::kDifference:
      return CombinedSetOf(*node);
    default:
      return std::nullopt;
  }
}

std::optional<RealSet> MathComparer::CombinedSetOf(const MathNode& node) {
  std::vector<RealInterval> pieces;
  std::optional<RealSet> out;
  for (const MathNodePtr& arg : node.args) {
    const std::optional<RealSet> part = RealSetOf(arg);
    if (!part.has_value()) return std::nullopt;
    if (node.kind == MathKind::kUnion) {
      pieces.insert(pieces.end(), part->pieces().begin(), part->pieces().end());
    } else if (!out.has_value()) {
      out = part;
    } else {
      out = out->Intersection(node.kind == MathKind::kIntersection ? *part : part->Complement());
    }
  }
  return node.kind == MathKind::kUnion ? RealSet(std::move(pieces)) : out;
}

}  // namespace pace::equiv
