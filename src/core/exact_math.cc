#include "core/exact_math.h"

#include <cmath>
#include <cstdint>
#include <limits>

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

}  // namespace

double Exp(double x) {
  if (std::isnan(x)) return x;
  return ExpOf({x, 0});
}

double Log(double x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return x;
  return LogOf(x).high;
}

double Pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || std::isinf(x) || std::isinf(y)) {
    const bool grows = (x > 1) == (y > 0);
    return grows ? std::numeric_limits<double>::infinity() : 0;
  }
  return ExpOf(Multiply(LogOf(x), {y, 0}));
}

double Cos(double x) {
  const double turns = Nearest(x / kHalfPi[0]);
  const Two rest = Add({x, 0}, Negative(Times(kHalfPi, turns)));
  const auto quadrant = static_cast<uint64_t>(static_cast<int64_t>(turns)) % 4;
  const Two value = Alternating(rest, quadrant % 2 == 0 ? 0 : 1);
  return quadrant == 1 || quadrant == 2 ? -value.high : value.high;
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
