// StepProfile: a step of decoding or training in its parts, each beside its limit, as
// reports hold it.
#ifndef PACE_BENCH_STEP_PROFILE_H_
#define PACE_BENCH_STEP_PROFILE_H_

#include <string>
#include <vector>

#include "core/json_writer.h"

namespace pace {

struct ProfilePart {
  std::string name;
  double seconds = 0;  // of all its runs in a step
  double limit = 0;    // seconds that they would take at the limit
};

struct StepProfile {
  std::string shape;
  double step_seconds = 0;  // of the step as a whole
  std::vector<ProfilePart> parts;
};

// Writes the key "parts" and its value.
void WriteProfiles(const std::vector<StepProfile>& profiles, JsonWriter& json);

}  // namespace pace

#endif  // PACE_BENCH_STEP_PROFILE_H_
