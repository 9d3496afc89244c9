// The functions that MathEvaluator knows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>

#include "reward/equivalence/math_evaluator.h"

namespace pace::equiv {
namespace {

constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();

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
