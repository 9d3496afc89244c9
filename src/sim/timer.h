// Timer: something that happens at a known time, besides what engines do.
#ifndef PACE_SIM_TIMER_H_
#define PACE_SIM_TIMER_H_

#include <cstddef>
#include <cstdint>

#include "core/clock.h"
#include "core/ids.h"
#include "core/version.h"
#include "sim/response.h"

namespace pace {

enum class TimerKind {
  kTrained,
  kToolReturned,
  kEngineLost,
  kEngineBack,
  kCheckpointed,
  kEvaluated
};
struct Timer {
  Seconds time{0};
  int64_t order = 0;  // of setting: equal times keep it
  TimerKind kind = TimerKind::kTrained;
  GroupId group{};             // kToolReturned
  ResponseIndex response = 0;  // kToolReturned
  size_t engine = 0;           // kEngineLost, kEngineBack
  PolicyVersion version{};     // kTrained, kCheckpointed, kEvaluated
  bool operator>(const Timer& other) const {
    return time != other.time ? time > other.time : order > other.order;
  }
};

}  // namespace pace

#endif  // PACE_SIM_TIMER_H_
