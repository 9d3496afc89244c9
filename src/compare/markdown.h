// Numbers as tables show them.
// Thread-safety: pure functions.
#ifndef PACE_COMPARE_MARKDOWN_H_
#define PACE_COMPARE_MARKDOWN_H_

#include <cmath>
#include <cstdio>
#include <string>

#include "compare/statistics.h"

namespace pace {

inline std::string Fixed(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

// "48.1 ± 0.7", each times `factor`.
inline std::string Show(const Estimate& estimate, double factor, int digits) {
  if (estimate.count == 0) return "–";
  std::string out = Fixed(factor * estimate.mean, digits);
  if (std::isfinite(estimate.half_width)) {
    out += " ± " + Fixed(factor * estimate.half_width, digits);
  }
  return out;
}

}  // namespace pace

#endif  // PACE_COMPARE_MARKDOWN_H_
