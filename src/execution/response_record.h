// One group of responses as bytes: a record of groups.bin or in_flight.bin.
//
// About 8 bytes a token, or 12 where sampling truncates the distribution: an id, its
// log-probability, and where it differs the one it was sampled with. Versions are written
// once for each run of tokens. Log-probabilities keep their bits, infinities and NaNs too.
// Reading checks every length, id and range, and that nothing follows.
// Thread-safety: functions.
#ifndef PACE_EXECUTION_RESPONSE_RECORD_H_
#define PACE_EXECUTION_RESPONSE_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "execution/trajectory.h"

namespace pace {

// Unfinished responses of one group on one worker.
struct GroupInFlight {
  GroupId group{};
  std::vector<int64_t> members = {};
  std::vector<PartialResponse> responses = {};  // one each
};

void AppendRecord(std::string& out, const GroupTrajectories& group);
void AppendRecord(std::string& out, const GroupInFlight& group);
// Into an empty group.
Status ReadRecord(std::string_view bytes, GroupTrajectories& group);
Status ReadRecord(std::string_view bytes, GroupInFlight& group);

}  // namespace pace

#endif  // PACE_EXECUTION_RESPONSE_RECORD_H_
