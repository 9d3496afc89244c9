#include "train/math/value_loss.h"

#include <algorithm>

namespace pace {

Result<ValueLossResult> ValueLoss(const SequenceLayout& layout, const ReductionWeights& weights,
                                  std::span<const double> values,
                                  std::span<const double> old_values,
                                  std::span<const double> returns,
                                  const std::optional<double>& clip) {
  const size_t num_tokens = layout.num_tokens();
  PACE_RETURN_IF_ERROR(layout.Validate());
  PACE_RETURN_IF_ERROR(CheckLength("values", values.size(), "tokens", num_tokens, false));
  PACE_RETURN_IF_ERROR(
      CheckLength("old_values", old_values.size(), "tokens", num_tokens, !clip.has_value()));
  PACE_RETURN_IF_ERROR(CheckLength("returns", returns.size(), "tokens", num_tokens, false));
  PACE_RETURN_IF_ERROR(
      CheckLength("reduction weights", weights.token.size(), "tokens", num_tokens, false));
  if (clip.has_value() && !(*clip > 0)) {
    return InvalidArgument("value.clip = ", *clip, ": must be positive (none turns it off)");
  }
  ValueLossResult out;
  out.gradient.assign(num_tokens, 0.0);
  MeanOf clipped;
  for (size_t token = 0; token < num_tokens; ++token) {
    if (layout.mask[token] == 0) continue;
    const double error = values[token] - returns[token];
    double loss = error * error / 2;
    double slope = error;
    if (clip.has_value()) {
      const double bounded =
          std::clamp(values[token], old_values[token] - *clip, old_values[token] + *clip);
      const double bounded_error = bounded - returns[token];
      const bool is_clipped = bounded_error * bounded_error > error * error;
      clipped.Add(is_clipped ? 1 : 0);
      if (is_clipped) {
        loss = bounded_error * bounded_error / 2;
        slope = 0;
      }
    }
    out.loss += weights.token[token] * loss;
    out.gradient[token] = weights.token[token] * slope;
  }
  if (clip.has_value()) out.metrics.push_back(clipped.As("train/value_clip_fraction"));
  return out;
}

}  // namespace pace
