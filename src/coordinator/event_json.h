// Events as JSON lines: what events.jsonl holds.
//
//   {"event":"worker_joined","worker":0,"max_groups":8}
//   {"event":"response_finished","group":3,"member":1,"segments":[[0,95],[1,12]],
//    "prefix_score":0.02,"num_bytes":856}
//
// Reading is strict: a missing, doubled or unknown key is an error. Whether an event is
// possible at that moment, Coordinator::Validate decides.
#ifndef PACE_COORDINATOR_EVENT_JSON_H_
#define PACE_COORDINATOR_EVENT_JSON_H_

#include <string>
#include <string_view>

#include "coordinator/events.h"
#include "core/status.h"

namespace pace {

// Appends one object, without a newline.
void AppendEventJson(std::string& out, const Event& event);
Result<Event> EventFromJson(std::string_view json);

// For logs and for tests that compare what two coordinators ask for.
std::string CommandToJson(const Command& command);

// Bounds on what a file may claim: sums over a whole run stay far from overflow.
inline constexpr int64_t kLargestTokens = int64_t{1} << 32;
inline constexpr int64_t kLargestBytes = int64_t{1} << 36;

}  // namespace pace

#endif  // PACE_COORDINATOR_EVENT_JSON_H_
