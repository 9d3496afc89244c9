// The penalty of responses that come close to the length limit (DAPO's soft
// overlong punishment).
//
// Thread-safety: values.
#ifndef PACE_REWARD_OVERLONG_H_
#define PACE_REWARD_OVERLONG_H_

#include <cstdint>

#include "core/status.h"

namespace pace {

struct OverlongOptions {
  // Longest response, in tokens.
  int64_t max_length = 8192;
  // The last tokens before the limit, over which the penalty grows from 0 to
  // `factor`. Larger: shorter responses are pressed already.
  int64_t buffer_length = 4096;
  double factor = 1;

  [[nodiscard]] Status Validate() const;
};

// What to add to the reward of a response of `length` tokens: 0 up to
// max_length - buffer_length, then falling linearly, by `factor` over the
// buffer; it keeps falling beyond the limit. REQUIRES: options are valid
double OverlongPenalty(int64_t length, const OverlongOptions& options);

}  // namespace pace

#endif  // PACE_REWARD_OVERLONG_H_
