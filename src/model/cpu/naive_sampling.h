// Truncated distributions in double, by a full sort: what tests compare with.
#ifndef PACE_MODEL_CPU_NAIVE_SAMPLING_H_
#define PACE_MODEL_CPU_NAIVE_SAMPLING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "model/sampling.h"

namespace pace {

struct NaiveDistribution {
  std::vector<double> probabilities;  // 0 = cut
};

inline double NaiveLogProb(const std::vector<float>& logits, double scale, TokenId target) {
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp((static_cast<double>(logit) - logits[static_cast<size_t>(target)]) / scale);
  }
  return -std::log(sum);
}

inline NaiveDistribution NaiveTruncated(const std::vector<float>& logits,
                                        const SamplingOptions& options) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<double> terms;
  for (const float logit : logits) {
    terms.push_back(std::exp((static_cast<double>(logit) - logits[order[0]]) / options.scale()));
  }
  size_t num_kept = order.size();
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < num_kept) {
    num_kept = static_cast<size_t>(options.top_k);
    while (num_kept < order.size() && logits[order[num_kept]] == logits[order[num_kept - 1]]) {
      ++num_kept;
    }
  }
  double total = 0;
  for (size_t i = 0; i < num_kept; ++i) total += terms[order[i]];
  if (options.top_p < 1) {
    double sum = 0;
    size_t num_reached = 0;
    while (num_reached < num_kept && sum < options.top_p * total)
      sum += terms[order[num_reached++]];
    num_kept = num_reached;
  }
  while (num_kept > 1 && terms[order[num_kept - 1]] < options.min_p) --num_kept;
  total = 0;
  for (size_t i = 0; i < num_kept; ++i) total += terms[order[i]];
  NaiveDistribution result{.probabilities = std::vector<double>(logits.size())};
  for (size_t i = 0; i < num_kept; ++i) result.probabilities[order[i]] = terms[order[i]] / total;
  return result;
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_NAIVE_SAMPLING_H_
