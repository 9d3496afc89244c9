#include "reward/equivalence/math_node.h"

#include <algorithm>
#include <utility>

#include "core/concat.h"

namespace pace::equiv {
namespace {

bool IsUnordered(MathKind kind) {
  return kind == MathKind::kAdd || kind == MathKind::kMultiply || kind == MathKind::kSet ||
         kind == MathKind::kUnion || kind == MathKind::kIntersection;
}

bool AppendStructure(const MathNode& node, size_t max_bytes, std::string& out);

bool AppendArgs(const MathNode& node, size_t max_bytes, std::string& out) {
  std::vector<std::string> parts;
  for (const MathNodePtr& arg : node.args) {
    std::string part;
    if (!AppendStructure(*arg, max_bytes, part)) return false;
    parts.push_back(std::move(part));
  }
  if (IsUnordered(node.kind)) std::sort(parts.begin(), parts.end());
  for (const std::string& part : parts) {
    if (out.size() + part.size() > max_bytes) return false;
    out += part;
    out += ',';
  }
  return true;
}

bool AppendStructure(const MathNode& node, size_t max_bytes, std::string& out) {
  out += Concat(static_cast<int>(node.kind), "(");
  if (node.kind == MathKind::kNumber) out += node.number.ToText();
  if (!node.name.empty()) out += Concat(node.name, ":");
  if (node.kind == MathKind::kTuple) out += Concat(node.open, node.close);
  if (node.kind == MathKind::kMatrix) out += Concat(node.num_columns, ":");
  for (const MathRelation relation : node.relations) out += Concat(static_cast<int>(relation), ":");
  if (!AppendArgs(node, max_bytes, out)) return false;
  out += ')';
  return out.size() <= max_bytes;
}

bool IsMatrix(const MathNodePtr& node) {
  return node->kind == MathKind::kMatrix;
}

template <typename Change>
MathNodePtr ChangeArgs(const MathNodePtr& node, const Change& change) {
  auto out = std::make_shared<MathNode>(*node);
  for (MathNodePtr& arg : out->args) arg = change(arg);
  return out;
}

// A set of one in arithmetic is what braces around a term are: that term.
MathNodePtr Operand(const MathNodePtr& node) {
  return node->kind == MathKind::kSet && node->args.size() == 1 ? node->args[0] : node;
}

bool HasSign(const MathNode& node) {
  return node.kind == MathKind::kPlusMinus ||
         std::any_of(node.args.begin(), node.args.end(),
                     [](const MathNodePtr& arg) { return HasSign(*arg); });
}

size_t CountSigns(const MathNode& node) {
  size_t count = node.kind == MathKind::kPlusMinus ? 1 : 0;
  for (const MathNodePtr& arg : node.args) count += CountSigns(*arg);
  return count;
}

bool HasFlippedSign(const MathNode& node) {
  return node.flipped || std::any_of(node.args.begin(), node.args.end(),
                                     [](const MathNodePtr& arg) { return HasFlippedSign(*arg); });
}

bool HasCollection(const MathNode& node) {
  return IsCollection(node) ||
         std::any_of(node.args.begin(), node.args.end(),
                     [](const MathNodePtr& arg) { return HasCollection(*arg); });
}

// Whether each sign is chosen by itself. x = \pm a = \pm b says the same twice.
bool AreSignsApart(const MathNode& node) {
  constexpr size_t kMaxSigns = 3;
  const size_t num_sides = static_cast<size_t>(std::count_if(
      node.args.begin(), node.args.end(), [](const MathNodePtr& arg) { return HasSign(*arg); }));
  if (node.kind == MathKind::kRelation && num_sides > 1) return false;
  const size_t num_signs = CountSigns(node);
  return num_signs > 1 && num_signs <= kMaxSigns && !HasFlippedSign(node) && !HasCollection(node);
}

// The tree with its signs chosen by the lowest bits of `minus`, which each sign uses
// up where they are chosen apart.
MathNodePtr WithSigns(const MathNodePtr& node, bool apart, uint32_t& minus) {
  if (!HasSign(*node)) return node;
  const MathNodePtr chosen =
      ChangeArgs(node, [&](const MathNodePtr& arg) { return WithSigns(arg, apart, minus); });
  if (node->kind != MathKind::kPlusMinus) return chosen;
  const bool is_minus = (minus & 1u) != 0;
  if (apart) minus >>= 1;
  const MathNodePtr& right = chosen->args[1];
  return MakeSum({chosen->args[0], is_minus == node->flipped ? right : MakeNegation(right)});
}

}  // namespace

MathNodePtr MakeInteger(int64_t value) {
  auto node = std::make_shared<MathNode>();
  node->number = Rational(value);
  return node;
}

MathNodePtr MakeSymbol(std::string name) {
  auto node = std::make_shared<MathNode>();
  node->kind = MathKind::kSymbol;
  node->name = std::move(name);
  return node;
}

MathNodePtr MakeNode(MathKind kind, std::vector<MathNodePtr> args) {
  auto node = std::make_shared<MathNode>();
  node->kind = kind;
  node->args = std::move(args);
  return node;
}

MathNodePtr MakeFunction(std::string name, std::vector<MathNodePtr> args) {
  auto node = std::make_shared<MathNode>();
  node->kind = MathKind::kFunction;
  node->name = std::move(name);
  node->args = std::move(args);
  return node;
}

MathNodePtr MakeNegation(const MathNodePtr& value) {
  const MathNodePtr operand = Operand(value);
  if (IsMatrix(operand)) return ChangeArgs(operand, MakeNegation);
  if (operand->kind == MathKind::kNumber) {
    auto node = std::make_shared<MathNode>(*operand);
    node->number = Negate(node->number);
    return node;
  }
  return MakeNode(MathKind::kNegate, {operand});
}

MathNodePtr MakeSum(std::vector<MathNodePtr> terms) {
  if (terms.size() == 1) return terms[0];
  for (MathNodePtr& term : terms) term = Operand(term);
  const MathNodePtr& first = terms[0];
  const bool one_shape = std::all_of(terms.begin(), terms.end(), [&first](const MathNodePtr& term) {
    return IsMatrix(term) && term->args.size() == first->args.size() &&
           term->num_columns == first->num_columns;
  });
  if (!one_shape) return MakeNode(MathKind::kAdd, std::move(terms));
  auto out = std::make_shared<MathNode>(*first);
  for (size_t i = 0; i < out->args.size(); ++i) {
    std::vector<MathNodePtr> entry;
    for (const MathNodePtr& term : terms) entry.push_back(term->args[i]);
    out->args[i] = MakeNode(MathKind::kAdd, std::move(entry));
  }
  return out;
}

MathNodePtr MakeProduct(std::vector<MathNodePtr> factors) {
  if (factors.size() == 1) return factors[0];
  for (MathNodePtr& factor : factors) factor = Operand(factor);
  const auto matrix = std::find_if(factors.begin(), factors.end(), IsMatrix);
  if (matrix == factors.end() || std::count_if(factors.begin(), factors.end(), IsMatrix) > 1) {
    return MakeNode(MathKind::kMultiply, std::move(factors));
  }
  return ChangeArgs(*matrix, [&factors](const MathNodePtr& entry) {
    std::vector<MathNodePtr> scaled;
    for (const MathNodePtr& factor : factors) scaled.push_back(IsMatrix(factor) ? entry : factor);
    return MakeNode(MathKind::kMultiply, std::move(scaled));
  });
}

MathNodePtr MakeQuotient(const MathNodePtr& top, const MathNodePtr& bottom) {
  const MathNodePtr above = Operand(top);
  const MathNodePtr below = Operand(bottom);
  if (IsMatrix(above) && !IsMatrix(below)) {
    return ChangeArgs(above, [&below](const MathNodePtr& entry) {
      return MakeNode(MathKind::kDivide, {entry, below});
    });
  }
  return MakeNode(MathKind::kDivide, {above, below});
}

bool IsCollection(const MathNode& node) {
  switch (node.kind) {
    case MathKind::kTuple:
    case MathKind::kSet:
    case MathKind::kUnion:
    case MathKind::kIntersection:
    case MathKind::kDifference:
    case MathKind::kNamedSet:
      return true;
    default:
      return false;
  }
}

bool IsNamesOnly(const MathNode& node) {
  if (node.kind == MathKind::kSymbol) return true;
  return !node.args.empty() && node.kind != MathKind::kPower &&
         std::all_of(node.args.begin(), node.args.end(),
                     [](const MathNodePtr& arg) { return IsNamesOnly(*arg); });
}

std::string StructureOf(const MathNode& node, size_t max_bytes) {
  std::string out;
  return AppendStructure(node, max_bytes, out) ? out : "";
}

std::vector<MathNodePtr> ChooseSigns(const MathNodePtr& node, bool apart) {
  constexpr uint32_t kAllMinus = ~uint32_t{0};
  const size_t num_signs = CountSigns(*node);
  if (num_signs == 0) return {node};
  apart = apart && AreSignsApart(*node);
  std::vector<MathNodePtr> out;
  for (uint32_t choice = 0; choice < (apart ? uint32_t{1} << num_signs : 2); ++choice) {
    uint32_t minus = apart || choice == 0 ? choice : kAllMinus;
    out.push_back(WithSigns(node, apart, minus));
  }
  return out;
}

}  // namespace pace::equiv
