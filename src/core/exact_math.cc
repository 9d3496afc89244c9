#include "core/exact_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace pace::exact {
namespace {

// An unevaluated sum of two doubles, |low| at most half a unit in the last place of high.
struct Two {
  double high = 0;
  double low = 0;
};

// Requires |a| >= |b|, or a = 0.
Two Ordered(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Two Sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// std::fma rounds once by definition, in hardware or not.
Two Product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

Two Add(Two a, Two b) {
  const Two high = Sum(a.high, b.high);
  const Two low = Sum(a.low, b.low);
  const Two sum = Ordered(high.high, high.low + low.high);
  return Ordered(sum.high, sum.low + low.low);
}

Two Multiply(Two a, Two b) {
  const Two product = Product(a.high, b.high);
  return Ordered(product.high, product.low + (a.high * b.low + a.low * b.high));
}

Two Divide(Two a, double b) {
  const double quotient = a.high / b;
  const Two back = Product(quotient, b);
  return Ordered(quotient, ((a.high - back.high) - back.low + a.low) / b);
}

Two Scaled(Two a, double power_of_two) {
  return {a.high * power_of_two, a.low * power_of_two};
}

Two Negative(Two a) {
  return {-a.high, -a.low};
}

// ln 2 and pi / 2 in parts so short that small multiples of all but the last are exact.
constexpr double kLn2[] = {0x1.62e42fefa2p-1, 0x1.9ef35793c6p-41, 0x1.673007e5ed5e8p-81};
constexpr double kHalfPi[] = {0x1.921fb54442cp+0, 0x1.18469898cc4p-44, 0x1.1701b839a24p-88,
                              0x1.2049c1114cf99p-132};
constexpr Two kInverseRootTwoPi = {0x1.9884533d43651p-2, -0x1.cbc0d30ebfd15p-56};

template <int n>
Two Times(const double (&parts)[n], double factor) {
  Two sum = Product(parts[n - 1], factor);
  for (int i = n - 2; i >= 0; --i) sum = Add({parts[i] * factor, 0}, sum);
  return sum;
}

double Nearest(double x) {
  return std::floor(x + 0.5);
}

// e^x - 1 for |x| <= 0.4, relative to which it is exact: a series at x / 2^9, then
// 1 + 2p + p^2 nine times.
Two ExpMinusOne(Two x) {
  constexpr int kDoublings = 9;
  constexpr int kTerms = 8;
  const Two small = Scaled(x, 1.0 / (1 << kDoublings));
  Two series = {1, 0};
  for (int n = kTerms; n >= 2; --n) {
    series = Add({1, 0}, Divide(Multiply(small, series), n));
  }
  Two result = Multiply(small, series);
  for (int i = 0; i < kDoublings; ++i) {
    result = Add(Scaled(result, 2), Multiply(result, result));
  }
  return result;
}

double ExpOf(Two x) {
  if (x.high > 710) return std::numeric_limits<double>::infinity();
  if (x.high < -746) return 0;
  const double power = Nearest(x.high * 0x1.71547652b82fep+0);
  const Two rest = Add(x, Negative(Times(kLn2, power)));
  return std::ldexp(Add({1, 0}, ExpMinusOne(rest)).high, static_cast<int>(power));
}

// For positive finite x.
Two LogOf(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --exponent;
  }
  // A first value good to a double, from log(m) = 2 atanh((m - 1) / (m + 1)).
  const double t = (m - 1) / (m + 1);
  double first = 0;
  for (int n = 23; n >= 3; n -= 2) first = (first + 1.0 / n) * (t * t);
  first = 2 * (t + t * first);
  // log(m) = first + log(1 + d) with d = m e^-first - 1, of the size of one rounding.
  const Two shrunk = ExpMinusOne({-first, 0});
  const Two d = Add({m - 1, 0}, Multiply({m, 0}, shrunk));
  const Two rest = Add({first, 0}, Add(d, {-0.5 * d.high * d.high, 0}));
  return Add(Times(kLn2, exponent), rest);
}

// x^first / first! - x^(first + 2) / (first + 2)! + ... for first 0 (cosine) or 1 (sine).
Two Alternating(Two x, int first) {
  constexpr int kTerms = 14;
  const Two square = Multiply(x, x);
  Two series = {1, 0};
  for (int term = kTerms; term >= 1; --term) {
    const int n = 2 * term + first;
    series = Add({1, 0}, Negative(Divide(Multiply(square, series), n * (n - 1))));
  }
  return first == 0 ? series : Multiply(x, series);
}

// e^(-x^2 / 2) / sqrt(2 pi)
Two Density(double x) {
  const Two exponent = Scaled(Product(x, x), -0.5);
  const double power = Nearest(exponent.high * 0x1.71547652b82fep+0);
  const Two rest = Add(exponent, Negative(Times(kLn2, power)));
  const Two value = Multiply(Add({1, 0}, ExpMinusOne(rest)), kInverseRootTwoPi);
  return {std::ldexp(value.high, static_cast<int>(power)),
          std::ldexp(value.low, static_cast<int>(power))};
}

// --- the quick phase ---
//
// Tables and short series give about 62 bits at a tenth of the cost. Where the value plus and
// minus the bound of its error round to the same double, that double is the result; otherwise
// the functions above decide (Ziv's rounding test). About one call in a hundred is undecided.
// The bounds are derived beside the series, with at least a factor of two to spare.

constexpr double kExpError = 0x1p-63;  // of a value between 0.7 and 1.42
constexpr double kLogError = 0x1p-62;
constexpr double kCosError = 0x1p-61;

std::optional<double> RoundIfCertain(double high, double low, double error) {
  const double below = high + (low - error);
  const double above = high + (low + error);
  if (below != above) return std::nullopt;
  return above;
}

int64_t NearestInteger(double x) {
  return static_cast<int64_t>(x < 0 ? x - 0.5 : x + 0.5);
}

// REQUIRES: -1022 <= exponent <= 1023
double PowerOfTwo(int64_t exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// 2^(i / 64) for i from -32 to 31.
constexpr int64_t kExpSteps = 64;
const std::array<Two, kExpSteps>& ExpTable() {
  static const std::array<Two, kExpSteps> table = [] {
    std::array<Two, kExpSteps> out;
    for (int i = 0; i < kExpSteps; ++i) {
      const double power = static_cast<double>(i - kExpSteps / 2) / kExpSteps;
      out[static_cast<size_t>(i)] = Add({1, 0}, ExpMinusOne(Times(kLn2, power)));
    }
    return out;
  }();
  return table;
}

// e^x, where x has an error of at most `x_error`. The product n ln 2 / 64 is exact in its first
// two parts up to |x| = 60.
constexpr double kMaxQuickExp = 60;
std::optional<double> QuickExp(Two x, double x_error) {
  if (!(std::abs(x.high) < kMaxQuickExp)) return std::nullopt;
  const int64_t n = NearestInteger(x.high * (0x1.71547652b82fep+0 * kExpSteps));
  const double steps = static_cast<double>(n) / kExpSteps;
  const Two rest = Sum(x.high - steps * kLn2[0], -steps * kLn2[1]);
  // |h| <= 2^-7.5, so the square's term is below 2^-16 and its rounding below 2^-67.
  const double h = rest.high;
  const double l = rest.low + x.low;
  const double series =
      1.0 / 2 + h * (1.0 / 6 + h * (1.0 / 24 + h * (1.0 / 120 + h * (1.0 / 720 + h / 5040))));
  const double tail = h * h * series + (l + h * l);
  // factor (1 + h + tail)
  const int64_t index = n + kExpSteps / 2;
  const Two factor = ExpTable()[static_cast<size_t>(index & (kExpSteps - 1))];
  const Two product = Product(factor.high, h);
  const Two sum = Ordered(factor.high, product.high);
  const double low = product.low + (factor.high * tail + (factor.low + factor.low * h));
  const auto value = RoundIfCertain(sum.high, sum.low + low, kExpError + 1.5 * x_error);
  if (!value.has_value()) return std::nullopt;
  return *value * PowerOfTwo(index >> std::countr_zero(uint64_t{kExpSteps}));
}

// For m near i / 64: a short c near 1 / m, and -log(c).
constexpr int kLogSteps = 64;
struct LogStep {
  double inverse = 1;
  Two log;
};
constexpr size_t kMaxLogIndex = 91;  // of the square root of 2
const std::array<LogStep, kMaxLogIndex + 1>& LogTable() {
  static const std::array<LogStep, kMaxLogIndex + 1> table = [] {
    std::array<LogStep, kMaxLogIndex + 1> out;
    for (size_t i = 1; i <= kMaxLogIndex; ++i) {
      const double inverse = Nearest(256.0 * kLogSteps / static_cast<double>(i)) / 256;
      out[i] = {inverse, Negative(LogOf(inverse))};
    }
    return out;
  }();
  return table;
}

// log(x) with an error of at most kLogError, not normalised, for positive finite x that is not
// subnormal.
Two QuickLog(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffff) | (uint64_t{1023} << 52));
  if (m > 0x1.6a09e667f3bcdp+0) {
    m /= 2;
    ++exponent;
  }
  const LogStep& step = LogTable()[static_cast<size_t>(m * kLogSteps + 0.5)];
  // m c = 1 + h + l with |h| <= 2^-6.1: the square's term is below 2^-13.2, its rounding below
  // 2^-64.4.
  const Two product = Product(m, step.inverse);
  const double h = product.high - 1;
  const double l = product.low;
  const double series =
      -1.0 / 2 +
      h * (1.0 / 3 +
           h * (-1.0 / 4 +
                h * (1.0 / 5 +
                     h * (-1.0 / 6 +
                          h * (1.0 / 7 + h * (-1.0 / 8 + h * (1.0 / 9 - h * (1.0 / 10))))))));
  const double tail = h * h * series + (l - l * h * (1 - h));
  const double power = static_cast<double>(exponent);
  const Two large = Sum(power * kLn2[0], step.log.high);
  const Two sum = Sum(large.high, h);
  return {sum.high, ((large.low + sum.low) + (step.log.low + power * kLn2[1])) + tail};
}

bool IsQuickLog(double x) {
  return x >= std::numeric_limits<double>::min() && x <= std::numeric_limits<double>::max();
}

// Cosine and sine of i pi / 64.
constexpr int64_t kCosSteps = 128;
struct Direction {
  Two cosine, sine;
};
const std::array<Direction, kCosSteps>& CosTable() {
  static const std::array<Direction, kCosSteps> table = [] {
    std::array<Direction, kCosSteps> out;
    constexpr size_t kQuadrant = kCosSteps / 4;
    for (size_t i = 0; i < kQuadrant; ++i) {
      const Two angle = Times(kHalfPi, static_cast<double>(i) / kQuadrant);
      const Two cosine = Alternating(angle, 0), sine = Alternating(angle, 1);
      out[i] = {cosine, sine};
      out[i + kQuadrant] = {Negative(sine), cosine};
      out[i + 2 * kQuadrant] = {Negative(cosine), Negative(sine)};
      out[i + 3 * kQuadrant] = {sine, Negative(cosine)};
    }
    return out;
  }();
  return table;
}

// The product n pi / 64 is exact in its first two parts up to |x| = 8.
constexpr double kMaxQuickCos = 8;
std::optional<double> QuickCos(double x) {
  if (!(std::abs(x) < kMaxQuickCos)) return std::nullopt;
  const int64_t n = NearestInteger(x * (kCosSteps / 4 / kHalfPi[0]));
  const double quarters = static_cast<double>(n) / (kCosSteps / 4);
  const Two rest = Sum(x - quarters * kHalfPi[0], -quarters * kHalfPi[1]);
  // |h| <= 2^-5.3, so the cosine's first term is below 2^-11.6 and its rounding below 2^-62.9.
  const double h = rest.high;
  const double square = h * h;
  const double sine_tail =
      rest.low +
      h * square *
          (-1.0 / 6 + square * (1.0 / 120 + square * (-1.0 / 5040 + square * (1.0 / 362880))));
  const double cosine_tail =
      square * (-1.0 / 2 + square * (1.0 / 24 + square * (-1.0 / 720 + square / 40320))) -
      h * rest.low;
  // cosine (1 + cosine_tail) - sine (h + sine_tail)
  const auto& [cosine, sine] = CosTable()[static_cast<size_t>(n & (kCosSteps - 1))];
  const Two product = Product(sine.high, h);
  const Two sum = Sum(cosine.high, -product.high);
  const double low = (sum.low + (cosine.low - product.low - sine.low * h)) +
                     (cosine.high * cosine_tail - sine.high * sine_tail);
  return RoundIfCertain(sum.high, low, kCosError);
}

std::optional<double> QuickPow(double x, double y) {
  const Two product = Multiply(QuickLog(x), {y, 0});
  return QuickExp(product, std::abs(y) * kLogError);
}

// The limits of Log and Pow; none where the result is a matter of arithmetic.
std::optional<double> LogLimit(double x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return x;
  return std::nullopt;
}

std::optional<double> PowLimit(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || std::isinf(x) || std::isinf(y)) {
    const bool grows = (x > 1) == (y > 0);
    return grows ? std::numeric_limits<double>::infinity() : 0;
  }
  return std::nullopt;
}

}  // namespace

namespace reference {

double Exp(double x) {
  if (std::isnan(x)) return x;
  return ExpOf({x, 0});
}

double Log(double x) {
  if (const auto limit = LogLimit(x)) return *limit;
  return LogOf(x).high;
}

double Pow(double x, double y) {
  if (const auto limit = PowLimit(x, y)) return *limit;
  return ExpOf(Multiply(LogOf(x), {y, 0}));
}

double Cos(double x) {
  const double turns = Nearest(x / kHalfPi[0]);
  const Two rest = Add({x, 0}, Negative(Times(kHalfPi, turns)));
  const auto quadrant = static_cast<uint64_t>(static_cast<int64_t>(turns)) % 4;
  const Two value = Alternating(rest, quadrant % 2 == 0 ? 0 : 1);
  return quadrant == 1 || quadrant == 2 ? -value.high : value.high;
}

}  // namespace reference

double Exp(double x) {
  if (const auto quick = QuickExp({x, 0}, 0)) return *quick;
  return reference::Exp(x);
}

double Log(double x) {
  if (IsQuickLog(x)) {
    const Two quick = QuickLog(x);
    if (const auto value = RoundIfCertain(quick.high, quick.low, kLogError)) return *value;
  }
  return reference::Log(x);
}

double Pow(double x, double y) {
  if (const auto limit = PowLimit(x, y)) return *limit;
  if (IsQuickLog(x)) {
    if (const auto quick = QuickPow(x, y)) return *quick;
  }
  return reference::Pow(x, y);
}

double Cos(double x) {
  if (const auto quick = QuickCos(x)) return *quick;
  return reference::Cos(x);
}

double NormalCdf(double x) {
  if (std::isnan(x)) return x;
  // Where the series' digits would cancel: the continued fraction of the tail.
  constexpr double kTail = 6;
  if (std::abs(x) > kTail) {
    const double size = std::abs(x);
    if (size > 40) return x < 0 ? 0 : 1;
    double fraction = size;
    for (int n = 150; n >= 1; --n) fraction = size + n / fraction;
    const double tail = Density(size).high / fraction;
    return x < 0 ? tail : 1 - tail;
  }
  // 1/2 + density (x + x^3 / 3 + x^5 / (3 5) + ...)
  const Two square = Product(x, x);
  Two series = {1, 0};
  for (int n = 221; n >= 3; n -= 2) series = Add({1, 0}, Divide(Multiply(square, series), n));
  return Add({0.5, 0}, Multiply(Density(x), Multiply({x, 0}, series))).high;
}

}  // namespace pace::exact
