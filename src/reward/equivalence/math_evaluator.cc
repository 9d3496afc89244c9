#include "reward/equivalence/math_evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <utility>

#include "core/random.h"

namespace pace::equiv {
namespace {

constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();
constexpr size_t kNumRealPoints = 4;
constexpr uint64_t kSeed = 20260815;
constexpr int64_t kCallSteps = 30;

enum Stream : uint32_t { kSymbols = 1, kCalls = 2 };

// FNV-1a: names become counters of the random numbers.
uint64_t HashOf(std::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// Drops an imaginary part that is nothing but rounding.
Complex Cleaned(Complex value) {
  constexpr long double kRounding = 1e-17L;
  if (std::abs(value.imag()) <= kRounding * std::abs(value.real())) return {value.real(), 0.0L};
  return value;
}

void CollectNames(const MathNode& node, std::set<std::string>& names) {
  if (node.kind == MathKind::kSymbol && node.name != "i") names.insert(node.name);
  if (node.kind == MathKind::kCall) {
    names.insert(StructureOf(node));
    return;
  }
  const bool is_range = node.kind == MathKind::kFunction && node.args.size() == 4;
  std::set<std::string> inside;
  for (const MathNodePtr& arg : node.args) CollectNames(*arg, is_range ? inside : names);
  if (!is_range) return;
  inside.erase(node.args[3]->name);
  names.insert(inside.begin(), inside.end());
}

// |base|^exponent with the sign that the odd root of a negative number has.
long double RealPower(long double base, const Rational& exponent) {
  const long double size = std::pow(-base, exponent.ToReal());
  return exponent.Numerator().Modulo(2) == 1 ? -size : size;
}

}  // namespace

std::vector<std::string> FreeNames(const MathNode& node) {
  std::set<std::string> names;
  CollectNames(node, names);
  return {names.begin(), names.end()};
}

bool MathEvaluator::Spend(int64_t steps) {
  if (num_steps_ > kMaxSteps) return false;
  num_steps_ += steps;
  return num_steps_ <= kMaxSteps;
}

const MathEvaluator::Values& MathEvaluator::Of(const MathNodePtr& node) {
  const auto found = cache_.find(node.get());
  if (found != cache_.end()) return found->second;
  Values values;
  values.node = node;
  values.is_constant = FreeNames(*node).empty();
  if (values.is_constant) values.exact = Exact(*node);
  for (size_t point = 0; point < kNumPoints; ++point) {
    values.at[point] = values.is_constant && point > 0 ? values.at[0] : At(*node, point, {});
  }
  return cache_.emplace(node.get(), std::move(values)).first->second;
}

std::optional<long double> MathEvaluator::RealOf(const MathNodePtr& node) {
  constexpr long double kInfinite = std::numeric_limits<long double>::infinity();
  if (node->kind == MathKind::kInfinity) return kInfinite;
  if (node->kind == MathKind::kNegate && node->args[0]->kind == MathKind::kInfinity) {
    return -kInfinite;
  }
  const Values& values = Of(node);
  const Complex value = values.at[0];
  if (!values.is_constant || !IsFinite(value) ||
      std::abs(value.imag()) > 1e-15L * std::abs(value.real())) {
    return std::nullopt;
  }
  return value.real();
}

Complex MathEvaluator::At(const MathNode& node, size_t point, const Bindings& bindings) {
  point_ = point;
  bindings_ = bindings;
  return Evaluate(node);
}

Complex MathEvaluator::SymbolValue(const std::string& name) const {
  const auto bound = bindings_.find(name);
  if (bound != bindings_.end()) return bound->second;
  if (name == "i") return {0, 1};
  const CounterRandom random(kSeed, kSymbols);
  const long double u = random.Uniform(HashOf(name), point_);
  if (point_ >= kNumRealPoints) return {std::floor(2 + 10 * u)};
  if (point_ == 0 || point_ == 2) return {0.2L + 2.7L * u};
  return {(point_ == 1 ? -2.6L * u - 0.1L : 5 * u - 2.5L)};
}

Complex MathEvaluator::Evaluate(const MathNode& node) {
  if (!Spend(1)) return {kNaN};
  switch (node.kind) {
    case MathKind::kNumber:
      return {node.number.ToReal()};
    case MathKind::kSymbol:
      return SymbolValue(node.name);
    case MathKind::kPi:
      return {std::numbers::pi_v<long double>};
    case MathKind::kEuler:
      return {std::numbers::e_v<long double>};
    case MathKind::kInfinity:
      return {std::numeric_limits<long double>::infinity()};
    case MathKind::kAdd: {
      Complex sum = 0;
      for (const MathNodePtr& arg : node.args) sum += Evaluate(*arg);
      return Cleaned(sum);
    }
    case MathKind::kMultiply: {
      Complex product = 1;
      for (const MathNodePtr& arg : node.args) product *= Evaluate(*arg);
      return Cleaned(product);
    }
    case MathKind::kNegate:
      return Cleaned(-Evaluate(*node.args[0]));
    case MathKind::kDivide:
      return Cleaned(Evaluate(*node.args[0]) / Evaluate(*node.args[1]));
    case MathKind::kPercent:
      return Evaluate(*node.args[0]) / 100.0L;
    case MathKind::kPower:
      return Cleaned(EvaluatePower(node));
    case MathKind::kFunction:
      return Cleaned(EvaluateFunction(node));
    case MathKind::kCall:
      return EvaluateCall(node);
    default:
      return {kNaN};
  }
}

Complex MathEvaluator::EvaluatePower(const MathNode& node) {
  Spend(kCallSteps);
  const Complex base = Evaluate(*node.args[0]);
  const Complex exponent = Evaluate(*node.args[1]);
  if (!IsFinite(base) || !IsFinite(exponent)) return {kNaN};
  const bool real = base.imag() == 0 && exponent.imag() == 0;
  if (real && (base.real() >= 0 || exponent.real() == std::floor(exponent.real()))) {
    return {std::pow(base.real(), exponent.real())};
  }
  if (real) {
    const MaybeRational exact = Exact(*node.args[1]);
    if (exact.has_value() && exact->Denominator().Modulo(2) == 1) {
      return {RealPower(base.real(), *exact)};
    }
  }
  if (exponent.imag() == 0 && exponent.real() == std::floor(exponent.real()) &&
      std::abs(exponent.real()) <= 64) {
    Complex out = 1;
    for (int i = 0; i < static_cast<int>(std::abs(exponent.real())); ++i) out *= base;
    return exponent.real() < 0 ? 1.0L / out : out;
  }
  return std::exp(exponent * std::log(Complex(base.real(), base.imag() == 0 ? 0 : base.imag())));
}

Complex MathEvaluator::EvaluateFunction(const MathNode& node) {
  Spend(kCallSteps);
  if (node.name == "sum" || node.name == "prod") return EvaluateRange(node);
  if (node.args.size() == 1 && node.args[0]->kind == MathKind::kMatrix) {
    return node.name == "det" ? EvaluateDeterminant(*node.args[0]) : Complex(kNaN);
  }
  std::vector<Complex> arguments;
  for (const MathNodePtr& arg : node.args) {
    arguments.push_back(Evaluate(*arg));
    if (!IsFinite(arguments.back())) return {kNaN};
  }
  if (node.name == "log" && arguments.size() == 2) {
    return ApplyFunction("ln", arguments[0]) / ApplyFunction("ln", arguments[1]);
  }
  if (arguments.size() == 1 && node.name != "max" && node.name != "min") {
    return ApplyFunction(node.name, arguments[0]);
  }
  return ApplyFunction(node.name, arguments);
}

Complex MathEvaluator::EvaluateRange(const MathNode& node) {
  constexpr long double kMaxTerms = 2000;
  if (node.args.size() != 4) return {kNaN};
  const Complex lower = Evaluate(*node.args[1]);
  const Complex upper = Evaluate(*node.args[2]);
  const bool countable = lower.imag() == 0 && upper.imag() == 0 && IsFinite(lower) &&
                         IsFinite(upper) && lower.real() == std::floor(lower.real()) &&
                         upper.real() == std::floor(upper.real()) &&
                         upper.real() - lower.real() < kMaxTerms;
  if (!countable) return {kNaN};
  const bool is_sum = node.name == "sum";
  Complex total = is_sum ? 0 : 1;
  const std::string& name = node.args[3]->name;
  const Bindings outer = bindings_;
  for (long double index = lower.real(); index <= upper.real() && num_steps_ <= kMaxSteps;
       ++index) {
    bindings_[name] = index;
    const Complex term = Evaluate(*node.args[0]);
    if (is_sum) {
      total += term;
    } else {
      total *= term;
    }
  }
  bindings_ = outer;
  return total;
}

// A smooth function of the arguments, different for every name.
Complex MathEvaluator::EvaluateCall(const MathNode& node) {
  Spend(2 * kCallSteps);
  if (!bindings_.empty()) {
    const auto bound = bindings_.find(StructureOf(node));
    if (bound != bindings_.end()) return bound->second;
  }
  const CounterRandom random(kSeed, kCalls);
  const uint64_t key = HashOf(node.name);
  Complex out = static_cast<long double>(random.Uniform(key, 0));
  for (size_t i = 0; i < node.args.size(); ++i) {
    const Complex argument = Evaluate(*node.args[i]);
    const long double slope = 1 + random.Uniform(key, 2 * i + 1);
    const long double shift = random.Uniform(key, 2 * i + 2);
    out += slope * std::sin(argument * slope + shift);
  }
  return out;
}

Complex MathEvaluator::EvaluateDeterminant(const MathNode& matrix) {
  const size_t size = matrix.num_columns;
  if (matrix.args.size() != size * size || !Spend(static_cast<int64_t>(size * size * size))) {
    return {kNaN};
  }
  std::vector<Complex> entries;
  for (const MathNodePtr& arg : matrix.args) entries.push_back(Evaluate(*arg));
  Complex determinant = 1;
  for (size_t column = 0; column < size; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < size; ++row) {
      if (std::abs(entries[row * size + column]) > std::abs(entries[pivot * size + column])) {
        pivot = row;
      }
    }
    if (entries[pivot * size + column] == Complex(0)) return 0;
    if (pivot != column) {
      std::swap_ranges(entries.begin() + static_cast<ptrdiff_t>(pivot * size),
                       entries.begin() + static_cast<ptrdiff_t>((pivot + 1) * size),
                       entries.begin() + static_cast<ptrdiff_t>(column * size));
      determinant = -determinant;
    }
    determinant *= entries[column * size + column];
    for (size_t row = column + 1; row < size; ++row) {
      const Complex factor = entries[row * size + column] / entries[column * size + column];
      for (size_t i = column; i < size; ++i) {
        entries[row * size + i] -= factor * entries[column * size + i];
      }
    }
  }
  return determinant;
}

}  // namespace pace::equiv
