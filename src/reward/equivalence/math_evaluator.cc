#include "reward/equivalence/math_evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <set>
#include <string_view>
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

MaybeRational ExactBinomial(const Rational& top, const Rational& bottom) {
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

MaybeRational ExactModulo(const Rational& a, const Rational& b) {
  const MaybeRational ratio = Divide(a, b);
  if (!ratio.has_value()) return std::nullopt;
  return Combine(a, Multiply(b, Floor(*ratio)), Subtract);
}

using Apply = Complex (*)(Complex);

Complex RealOnly(Complex z, long double (*function)(long double)) {
  return z.imag() == 0 ? Complex(function(z.real())) : Complex(kNaN);
}

long double Factorial(long double x) {
  return std::tgamma(x + 1);
}

const std::map<std::string_view, Apply>& Functions() {
  static const std::map<std::string_view, Apply> functions = {
      {"sin", [](Complex z) { return std::sin(z); }},
      {"cos", [](Complex z) { return std::cos(z); }},
      {"tan", [](Complex z) { return std::tan(z); }},
      {"csc", [](Complex z) { return 1.0L / std::sin(z); }},
      {"sec", [](Complex z) { return 1.0L / std::cos(z); }},
      {"cot", [](Complex z) { return std::cos(z) / std::sin(z); }},
      {"arcsin", [](Complex z) { return std::asin(z); }},
      {"arccos", [](Complex z) { return std::acos(z); }},
      {"arctan", [](Complex z) { return std::atan(z); }},
      {"arccsc", [](Complex z) { return std::asin(1.0L / z); }},
      {"arcsec", [](Complex z) { return std::acos(1.0L / z); }},
      {"arccot", [](Complex z) { return std::atan(1.0L / z); }},
      {"sinh", [](Complex z) { return std::sinh(z); }},
      {"cosh", [](Complex z) { return std::cosh(z); }},
      {"tanh", [](Complex z) { return std::tanh(z); }},
      {"arsinh", [](Complex z) { return std::asinh(z); }},
      {"arcosh", [](Complex z) { return std::acosh(z); }},
      {"artanh", [](Complex z) { return std::atanh(z); }},
      {"arcsinh", [](Complex z) { return std::asinh(z); }},
      {"arccosh", [](Complex z) { return std::acosh(z); }},
      {"arctanh", [](Complex z) { return std::atanh(z); }},
      {"exp", [](Complex z) { return std::exp(z); }},
      {"ln", [](Complex z) { return std::log(z); }},
      {"abs", [](Complex z) { return Complex(std::abs(z)); }},
      {"Re", [](Complex z) { return Complex(z.real()); }},
      {"Im", [](Complex z) { return Complex(z.imag()); }},
      {"arg", [](Complex z) { return Complex(std::arg(z)); }},
      {"floor", [](Complex z) { return RealOnly(z, std::floor); }},
      {"ceil", [](Complex z) { return RealOnly(z, std::ceil); }},
      {"factorial", [](Complex z) { return RealOnly(z, Factorial); }},
  };
  return functions;
}

long double Binomial(long double n, long double k) {
  constexpr long double kMaxLoop = 1000;
  if (k == std::floor(k) && k >= 0 && k <= kMaxLoop) {
    long double out = 1;
    for (long double i = 0; i < k; ++i) out *= (n - i) / (i + 1);
    return out;
  }
  return Factorial(n) / (Factorial(k) * Factorial(n - k));
}

bool AreIntegers(const std::vector<long double>& values) {
  constexpr long double kLargest = 1e15L;
  return std::all_of(values.begin(), values.end(),
                     [](long double x) { return x == std::floor(x) && std::abs(x) <= kLargest; });
}

long double Divisor(const std::string& name, const std::vector<long double>& values) {
  if (!AreIntegers(values)) return kNaN;
  int64_t out = static_cast<int64_t>(std::abs(values[0]));
  for (const long double value : values) {
    const int64_t next = static_cast<int64_t>(std::abs(value));
    if (name == "gcd") {
      out = std::gcd(out, next);
      continue;
    }
    const int64_t divisor = std::gcd(out, next);
    const long double product =
        divisor == 0 ? 0 : static_cast<long double>(out / divisor) * static_cast<long double>(next);
    if (!AreIntegers({product})) return kNaN;
    out = static_cast<int64_t>(product);
  }
  return static_cast<long double>(out);
}

bool IsCloseBy(long double one, long double other, long double distance) {
  constexpr long double kRelative = 1e-11L;
  constexpr long double kSmall = 1e-15L;
  const long double size = std::max(one, other);
  if (distance <= kRelative * size) return true;
  // Next to an exact zero only rounding is left to tell from it.
  return size <= kSmall && std::min(one, other) <= kSmall * kRelative;
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
    return Combine(first, Exact(*node.args[1]), node.name == "mod" ? ExactModulo : ExactBinomial);
  }
  if (node.args.size() != 1) return std::nullopt;
  if (node.name == "factorial") return Factorial(*first);
  if (node.name == "abs") return first->IsNegative() ? Negate(*first) : *first;
  if (node.name == "floor") return Floor(*first);
  return Negate(Floor(Negate(*first)));
}

Complex ApplyFunction(const std::string& name, Complex argument) {
  const auto found = Functions().find(name);
  if (found == Functions().end()) return {kNaN};
  // Branch cuts are approached from above.
  if (argument.imag() == 0) argument = Complex(argument.real(), 0.0L);
  return found->second(argument);
}

Complex ApplyFunction(const std::string& name, const std::vector<Complex>& arguments) {
  std::vector<long double> values;
  for (const Complex argument : arguments) {
    if (argument.imag() != 0 || !IsFinite(argument)) return {kNaN};
    values.push_back(argument.real());
  }
  if (values.empty()) return {kNaN};
  if (name == "max") return {*std::max_element(values.begin(), values.end())};
  if (name == "min") return {*std::min_element(values.begin(), values.end())};
  if (name == "gcd" || name == "lcm") return {Divisor(name, values)};
  if (values.size() != 2) return {kNaN};
  if (name == "binomial") return {Binomial(values[0], values[1])};
  if (name == "mod") return {values[0] - values[1] * std::floor(values[0] / values[1])};
  return {kNaN};
}

bool IsFinite(Complex value) {
  return std::isfinite(value.real()) && std::isfinite(value.imag());
}

bool AreClose(Complex a, Complex b) {
  return IsCloseBy(std::abs(a), std::abs(b), std::abs(a - b));
}

bool AreClose(long double a, long double b) {
  return IsCloseBy(std::abs(a), std::abs(b), std::abs(a - b));
}

}  // namespace pace::equiv
