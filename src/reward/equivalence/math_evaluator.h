// MathEvaluator: the value of a tree, exact if possible, and at random points.
//
// The value of a symbol depends on its name and the point alone, so two trees over
// the same names are compared by their values. Half of
// the points are real, half are small whole numbers. "i" is the imaginary unit;
// powers of negative reals with an odd denominator are real.
//
// Work is bounded: after kMaxSteps every value is NaN. Visiting one node costs a step; callers
// that compare values spend steps too.
//
// Thread-safety: none; it remembers what it computed.
#ifndef PACE_REWARD_EQUIVALENCE_MATH_EVALUATOR_H_
#define PACE_REWARD_EQUIVALENCE_MATH_EVALUATOR_H_

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "reward/equivalence/math_node.h"
#include "reward/equivalence/rational.h"

namespace pace::equiv {

using Complex = std::complex<long double>;

class MathEvaluator {
 public:
  static constexpr size_t kNumPoints = 8;
  static constexpr int64_t kMaxSteps = 60'000;

  struct Values {
    MathNodePtr node;         // keeps the address that the cache goes by
    bool is_constant = true;  // without symbols
    MaybeRational exact;      // of a constant that is rational
    std::array<Complex, kNumPoints> at;
  };

  const Values& Of(const MathNodePtr& node);

  // The value as a real number, infinities included; none for anything that
  // depends on a symbol or is not real.
  std::optional<long double> RealOf(const MathNodePtr& node);

  // The value at a point with some symbols given. Unknown functions are named
  // by their StructureOf there.
  using Bindings = std::map<std::string, Complex>;
  Complex At(const MathNode& node, size_t point, const Bindings& bindings);

  // An element of a finite field that stands for the value of a tree of numbers, names,
  // pi, e, i and square roots of numbers, however long it is; none for anything else.
  // Different residues mean different values.
  struct Residue {
    uint64_t real = 0;
    uint64_t imaginary = 0;
    friend bool operator==(const Residue&, const Residue&) = default;
  };
  std::optional<Residue> ResidueAt(const MathNode& node);

  // False once there are none left.
  bool Spend(int64_t steps);
  // At most kMaxSteps and what the last spending went beyond it.
  int64_t num_steps() const { return num_steps_; }

 private:
  Complex Evaluate(const MathNode& node);
  Complex EvaluatePower(const MathNode& node);
  Complex EvaluateFunction(const MathNode& node);
  Complex EvaluateRange(const MathNode& node);
  Complex EvaluateCall(const MathNode& node);
  Complex EvaluateDeterminant(const MathNode& matrix);
  Complex SymbolValue(const std::string& name) const;
  MaybeRational Exact(const MathNode& node);
  MaybeRational ExactUncharged(const MathNode& node);
  MaybeRational ExactFunction(const MathNode& node);
  std::optional<Residue> ResidueOfPower(const MathNode& node);
  std::optional<Residue> ResidueOfFactorial(const MathNode& argument);

  int64_t num_steps_ = 0;
  size_t point_ = 0;
  Bindings bindings_;
  std::unordered_map<const MathNode*, Values> cache_;
};

// Whether two values are the same but for rounding.
bool AreClose(Complex a, Complex b);
bool AreClose(long double a, long double b);
bool IsFinite(Complex value);

// Names of functions with one real or complex argument; NaN for any other.
Complex ApplyFunction(const std::string& name, Complex argument);
// Names of functions with several real arguments: max, min, gcd, lcm, mod,
// binomial.
Complex ApplyFunction(const std::string& name, const std::vector<Complex>& arguments);

// The names that a tree depends on; an unknown function counts as one name, its
// StructureOf.
std::vector<std::string> FreeNames(const MathNode& node);

}  // namespace pace::equiv

#endif  // PACE_REWARD_EQUIVALENCE_MATH_EVALUATOR_H_
