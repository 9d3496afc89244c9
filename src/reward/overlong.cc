#include "reward/overlong.h"

#include <algorithm>
#include <cmath>

namespace pace {

Status OverlongOptions::Validate() const {
  if (max_length < 1) return InvalidArgument("max_length = ", max_length, ": must be >= 1");
  if (buffer_length < 1 || buffer_length > max_length) {
    return InvalidArgument("buffer_length = ", buffer_length,
                           ": must be in [1, max_length = ", max_length, "]");
  }
  if (!(factor >= 0) || !std::isfinite(factor)) {
    return InvalidArgument("factor = ", factor, ": must be finite and >= 0 (0 means no penalty)");
  }
  return Status::Ok();
}

double OverlongPenalty(int64_t length, const OverlongOptions& options) {
  const int64_t exceeded = length - (options.max_length - options.buffer_length);
  if (exceeded <= 0) return 0;
  return -static_cast<double>(exceeded) / static_cast<double>(options.buffer_length) *
         options.factor;
}

}  // namespace pace
