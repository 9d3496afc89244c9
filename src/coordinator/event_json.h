// Events as JSON lines: what events.jsonl holds.
//
//   {"event":"worker_joined","worker":0,"max_groups":8}
//   {"event":"response_finished","group":3,"member":1,"segments":[[0,95],[1,12]],
//    "prefix_score":0.02,"num_bytes":856}
//
// Reading is strict: a missing, unknown or foreign key is an error. Whether an
// event fits the moment is Coordinator::Validate's to say.
#ifndef PACE_COORDINATOR_EVENT_JSON_H_
#define PACE_COORDINATOR_EVENT_JSON_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/events.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "core/status.h"

namespace pace {

// Appends one object, without a newline.
void AppendEventJson(std::string& out, const Event& event);
Result<Event> EventFromJson(std::string_view json);

// For logs and for tests that compare what two coordinators ask for.
std::string CommandToJson(const Command& command);

// [[version, tokens], ...]; the reader leaves its errors in the scanner.
void PutSegments(JsonWriter& json, std::span<const Segment> segments);
bool ScanSegments(JsonScanner& scan, std::vector<Segment>& segments);

// Bounds on what a file may claim: counts stay exact as doubles, and sums over
// a whole run stay far from overflow.
inline constexpr int64_t kLargestCount = int64_t{1} << 53;
inline constexpr int64_t kLargestTokens = int64_t{1} << 32;
inline constexpr int64_t kLargestBytes = int64_t{1} << 36;

}  // namespace pace

#endif  // PACE_COORDINATOR_EVENT_JSON_H_
