// Response: one simulated response.
//
// Responses are in flat arrays and named by index; a group owns group_size consecutive ones. A
// *stretch* is a span in which a response decodes without leaving its engine: a turn, or the
// part of it between two preemptions.
#ifndef PACE_SIM_RESPONSE_H_
#define PACE_SIM_RESPONSE_H_

#include <cstdint>
#include <vector>

#include "core/staleness.h"
#include "core/version.h"

namespace pace {

enum class ResponseState : uint8_t { kUnused, kQueued, kDecoding, kInTool, kFinished };

// One cache line each: a run of millions of them is bound by memory.
struct alignas(64) Response {
  // The plan.
  int32_t num_tokens = 1;  // policy tokens
  int32_t num_turns = 1;
  // Progress at the beginning of the current stretch, or now between stretches.
  int32_t num_done = 0;       // policy tokens
  int32_t turn = 0;           // counts from 0
  int32_t context = 0;        // prompt, policy and tool tokens
  int32_t uncached = 0;       // of these, how many the next admission must prefill
  int64_t stretch_begin = 0;  // iteration of its engine
  PolicyVersion kv_version;   // that computed its KV when it left the engine
  PolicyVersion completed;    // the trainer's when it finished
  bool correct = false;
  bool left_engine = false;  // by a tool call or a preemption
  bool has_runs = false;     // its versions are in SimResponses::runs
  ResponseState state = ResponseState::kUnused;

  // Policy tokens at which the current turn ends; turns are of equal length.
  int32_t TurnEnd() const {
    return static_cast<int32_t>(int64_t{num_tokens} * (turn + 1) / num_turns);
  }
};

// Eight bytes per policy token (id and log-probability), four per prompt or tool token.
inline int64_t ResponseBytes(const Response& response) {
  return 4 * int64_t{response.context} + 4 * int64_t{response.num_tokens};
}

struct SimResponses {
  std::vector<Response> responses;
  std::vector<VersionRuns> runs;  // versions of the stretches that ended
  // Without keep_runs, the versions of a response that had only one stretch are here until
  // the next response ends.
  bool keep_runs = false;
  VersionRuns last_runs;

  void Resize(size_t size) {
    responses.resize(size);
    runs.resize(size);
  }
};

using ResponseIndex = int32_t;
static_assert(sizeof(Response) == 64);

}  // namespace pace

#endif  // PACE_SIM_RESPONSE_H_
