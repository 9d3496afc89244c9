// MathNode: a mathematical expression, or a collection or relation of such.
//
// Trees are immutable and shared. They come from MathParser, which bounds their
// depth, so that walking one by recursion is safe.
//
// Thread-safety: as a shared_ptr to something constant.
#ifndef PACE_REWARD_EQUIVALENCE_MATH_NODE_H_
#define PACE_REWARD_EQUIVALENCE_MATH_NODE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reward/equivalence/rational.h"

namespace pace::equiv {

enum class MathKind {
  kNumber,  // `number`; `name` is the base that it says it is written in, if any
  kSymbol,  // `name`, in lower case: a variable, or a word that is the answer
  kPi,
  kEuler,
  kInfinity,
  kAdd,       // any number of args
  kMultiply,  // any number of args, in the order written
  kNegate,
  kDivide,
  kPower,
  kPercent,    // args[0] / 100
  kPlusMinus,  // args[0] +- args[1]; `flipped` for -+
  kFunction,   // `name` is one that Evaluate knows, see math_functions.h
  kCall,       // of an unknown function `name`: f(x)
  kMatrix,     // args by rows, `num_columns`
  kTuple,      // (a, b), [a, b), an interval or a point: `open`, `close`
  kSet,        // {a, b}, and bare lists: a, b
  kUnion,
  kIntersection,
  kDifference,
  kNamedSet,    // `name`: "R", "N", "Z", "Q", "C"; the empty set is a kSet
  kRelation,    // args[0] relations[0] args[1] relations[1] ...
  kCongruence,  // args[0], a value or a relation, modulo `name`
};

enum class MathRelation { kEqual, kUnequal, kLess, kLessEqual, kGreater, kGreaterEqual };

struct MathNode;
using MathNodePtr = std::shared_ptr<const MathNode>;

struct MathNode {
  MathKind kind = MathKind::kNumber;
  std::string name;
  Rational number;
  size_t num_places = 0;  // after the point: a decimal is compared to these
  bool flipped = false;
  char open = '(';
  char close = ')';
  size_t num_columns = 0;
  std::vector<MathNodePtr> args;
  std::vector<MathRelation> relations;
};

MathNodePtr MakeInteger(int64_t value);
MathNodePtr MakeSymbol(std::string name);
MathNodePtr MakeNode(MathKind kind, std::vector<MathNodePtr> args);
MathNodePtr MakeFunction(std::string name, std::vector<MathNodePtr> args);
// Arithmetic that knows matrices: a factor or a sign goes to every entry, and
// sums of one shape are taken entry by entry.
MathNodePtr MakeSum(std::vector<MathNodePtr> terms);
MathNodePtr MakeProduct(std::vector<MathNodePtr> factors);
MathNodePtr MakeNegation(const MathNodePtr& value);
MathNodePtr MakeQuotient(const MathNodePtr& top, const MathNodePtr& bottom);

bool IsCollection(const MathNode& node);
// A name, or a product, quotient, sum or list of names.
bool IsNamesOnly(const MathNode& node);

// A text that two trees share only if they are the same up to the order of
// terms, factors and members. At most `max_bytes` long; longer ones give "".
std::string StructureOf(const MathNode& node, size_t max_bytes = size_t{1} << 16);

// The trees that a tree with kPlusMinus stands for, or itself. Signs go together, as in
// (\pm1, \pm2) and 1\pm2\mp3; but with `apart` up to three \pm of one term, \pm1\pm2,
// are each either.
std::vector<MathNodePtr> ChooseSigns(const MathNodePtr& node, bool apart);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_MATH_NODE_H_
