// The loss of a value head: squared error, clipped around the old values.
//
//   L_t = max((V - G)^2, (clip(V, V_old - c, V_old + c) - G)^2) / 2
//
// V the head's output, V_old its output when the data was scored, G the return.
// Source: PPO's reference implementations; no clip: plain squared error.
#ifndef PACE_TRAIN_MATH_VALUE_LOSS_H_
#define PACE_TRAIN_MATH_VALUE_LOSS_H_

#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "train/math/metric.h"
#include "train/math/reduction.h"
#include "train/math/token_batch.h"

namespace pace {

struct ValueLossResult {
  double loss = 0;
  std::vector<double> gradient = {};  // in V; 0 where the mask is 0
  MetricList metrics = {};            // train/value_clip_fraction
};

// `clip` none: old_values may be empty.
Result<ValueLossResult> ValueLoss(const SequenceLayout& layout, const ReductionWeights& weights,
                                  std::span<const double> values,
                                  std::span<const double> old_values,
                                  std::span<const double> returns,
                                  const std::optional<double>& clip);

}  // namespace pace

#endif  // PACE_TRAIN_MATH_VALUE_LOSS_H_
