// Effective sample size: how many equal weights the given ones are worth.
//
//   ESS ratio = (sum w)^2 / (n sum w^2)
//
// 1 for equal weights of any size, 1 / n when one outweighs all others.
// Computed from logarithms, relative to the largest, so that neither overflow
// nor a common factor can change it.
#ifndef PACE_TRAIN_CORRECTION_EFFECTIVE_SAMPLE_SIZE_H_
#define PACE_TRAIN_CORRECTION_EFFECTIVE_SAMPLE_SIZE_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace pace {

// In [0, 1]; 0 without weights or where all are 0 (logarithm -infinity).
inline double EffectiveSampleRatio(std::span<const double> log_weights) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double log_weight : log_weights) largest = std::max(largest, log_weight);
  if (std::isinf(largest)) return 0;
  double sum = 0;
  double sum_of_squares = 0;
  for (const double log_weight : log_weights) {
    const double weight = std::exp(log_weight - largest);
    sum += weight;
    sum_of_squares += weight * weight;
  }
  return sum * sum / (sum_of_squares * static_cast<double>(log_weights.size()));
}

}  // namespace pace

#endif  // PACE_TRAIN_CORRECTION_EFFECTIVE_SAMPLE_SIZE_H_
