// Metric: one number that a loss or a correction reports about a batch.
//
// Every metric is a mean over `weight` things (tokens, sequences), so that the
// parts of a split minibatch merge to the numbers of the whole.
//
//   out.metrics.push_back(fraction.As("train/clip_fraction"));
//
// Thread-safety: plain data.
#ifndef PACE_TRAIN_MATH_METRIC_H_
#define PACE_TRAIN_MATH_METRIC_H_

#include <string>
#include <vector>

namespace pace {

struct Metric {
  std::string name = {};
  double value = 0;
  double weight = 0;
};

using MetricList = std::vector<Metric>;

// A mean being taken.
class MeanOf {
 public:
  void Add(double value) {
    sum_ += value;
    weight_ += 1;
  }
  double sum() const { return sum_; }
  double weight() const { return weight_; }
  // 0 over nothing.
  double value() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  Metric As(std::string name) const { return {std::move(name), value(), weight_}; }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

// The metric of that name, or null.
inline const Metric* FindMetric(const MetricList& metrics, const std::string& name) {
  for (const Metric& metric : metrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

// Adds the metrics of one more part of a minibatch.
inline void MergeMetrics(const MetricList& part, MetricList& whole) {
  for (const Metric& metric : part) {
    Metric* known = nullptr;
    for (Metric& candidate : whole) {
      if (candidate.name == metric.name) known = &candidate;
    }
    if (known == nullptr) {
      whole.push_back(metric);
      continue;
    }
    const double weight = known->weight + metric.weight;
    if (weight <= 0) continue;
    known->value = (known->value * known->weight + metric.value * metric.weight) / weight;
    known->weight = weight;
  }
}

}  // namespace pace

#endif  // PACE_TRAIN_MATH_METRIC_H_
