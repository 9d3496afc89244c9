// The rules that options of several losses share.
#ifndef PACE_TRAIN_LOSS_CLIP_RULES_H_
#define PACE_TRAIN_LOSS_CLIP_RULES_H_

#include <cmath>
#include <optional>
#include <string_view>

#include "core/status.h"

namespace pace {

inline Status CheckNotNegative(std::string_view owner, std::string_view name, double value) {
  if (value >= 0) return Status::Ok();
  return InvalidArgument(owner, ".", name, " = ", value, ": must be >= 0");
}

inline Status CheckPositive(std::string_view owner, std::string_view name, double value) {
  if (value > 0) return Status::Ok();
  return InvalidArgument(owner, ".", name, " = ", value, ": must be positive");
}

// A ratio is clipped to [1 - low, 1 + high].
inline Status CheckClipWidths(std::string_view owner, double low, double high) {
  PACE_RETURN_IF_ERROR(CheckNotNegative(owner, "clip_low", low));
  return CheckNotNegative(owner, "clip_high", high);
}

inline Status CheckDualClip(std::string_view owner, const std::optional<double>& dual_clip) {
  if (!dual_clip.has_value() || *dual_clip > 1) return Status::Ok();
  return InvalidArgument(owner, ".dual_clip = ", *dual_clip,
                         ": must be > 1 (a ratio; none turns it off)");
}

// A share of tokens.
inline Status CheckFraction(std::string_view owner, std::string_view name, double value) {
  if (value > 0 && value <= 1) return Status::Ok();
  return InvalidArgument(owner, ".", name, " = ", value, ": must be in (0, 1]");
}

}  // namespace pace

#endif  // PACE_TRAIN_LOSS_CLIP_RULES_H_
