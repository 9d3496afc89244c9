#include "train/math/logprob_reference.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace pace {
namespace {

// log sum_k exp(z_k / temperature)
double LogPartition(std::span<const double> logits, double temperature) {
  const double largest = *std::max_element(logits.begin(), logits.end()) / temperature;
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit / temperature - largest);
  return largest + std::log(sum);
}

// -sum_k p_k log p_k. A sum of terms of one sign loses nothing near 0.
double Entropy(std::span<const double> logits, double temperature, double log_partition) {
  double entropy = 0;
  for (const double logit : logits) {
    const double log_p = logit / temperature - log_partition;
    const double p = std::exp(log_p);
    if (p > 0) entropy -= p * log_p;
  }
  return entropy;
}

}  // namespace

TokenScore ScoreToken(std::span<const double> logits, size_t target, double temperature) {
  PACE_CHECK(target < logits.size() && temperature > 0, "target = ", target,
             ", temperature = ", temperature);
  const double log_partition = LogPartition(logits, temperature);
  return {.logprob = logits[target] / temperature - log_partition,
          .entropy = Entropy(logits, temperature, log_partition)};
}

void AddLogitGradient(std::span<const double> logits, size_t target, double temperature,
                      double logprob_gradient, double entropy_gradient,
                      std::span<double> gradient) {
  PACE_CHECK(gradient.size() == logits.size(), "gradient has ", gradient.size(), " entries");
  const double log_partition = LogPartition(logits, temperature);
  const double entropy = Entropy(logits, temperature, log_partition);
  for (size_t k = 0; k < logits.size(); ++k) {
    const double log_p = logits[k] / temperature - log_partition;
    const double p = std::exp(log_p);
    const double hit = k == target ? 1 : 0;
    gradient[k] +=
        (logprob_gradient * (hit - p) - (p > 0 ? entropy_gradient * p * (log_p + entropy) : 0)) /
        temperature;
  }
}

}  // namespace pace
