// What one response had of the tool.
#ifndef PACE_EXECUTION_TOOL_RECORD_H_
#define PACE_EXECUTION_TOOL_RECORD_H_

#include <cstdint>

#include "core/clock.h"

namespace pace {

struct ToolRecord {
  int64_t num_calls = 0;
  int64_t num_failures = 0;  // of these: no program that ended with code 0
  Seconds time{0};           // of the run's clock, from call to reply

  ToolRecord& operator+=(const ToolRecord& other) {
    num_calls += other.num_calls;
    num_failures += other.num_failures;
    time += other.time;
    return *this;
  }
  friend bool operator==(const ToolRecord&, const ToolRecord&) = default;
};

}  // namespace pace

#endif  // PACE_EXECUTION_TOOL_RECORD_H_
