// Elementary functions with the same bits on every processor.
//
// The C library promises no more than a small error: its results differ between
// processors, releases and even instruction sets of one processor. What must repeat
// to the bit on any machine (simulations, verdicts, random draws) uses these instead.
// They are built from IEEE additions, multiplications and divisions alone, carry about
// 100 bits, and round once at the end: the result is the double nearest to the true value,
// but for cases closer to a tie than 2^-95. A quick phase with fewer bits decides most calls;
// the rest take the full precision, so it changes no result.
//
//   const double factor = exact::Exp(sigma * normal);
//
// Slower than the C library's, NormalCdf by far: not for inner loops of a network.
// Thread-safety: pure functions.
#ifndef PACE_CORE_EXACT_MATH_H_
#define PACE_CORE_EXACT_MATH_H_

namespace pace::exact {

// e^x.
double Exp(double x);
// The natural logarithm; -inf at 0, NaN below.
double Log(double x);
// x^y for x >= 0 with the limits of std::pow; NaN for x < 0.
double Pow(double x, double y);
// The cosine of x radians. REQUIRES: |x| <= 100 (beyond it the reduction loses digits).
double Cos(double x);
// The share of a standard normal below x, to about 1e-15 of its value.
double NormalCdf(double x);

// The same functions without the quick phase, for tests to compare with.
namespace reference {
double Exp(double x);
double Log(double x);
double Pow(double x, double y);
double Cos(double x);
}  // namespace reference

}  // namespace pace::exact

#endif  // PACE_CORE_EXACT_MATH_H_
