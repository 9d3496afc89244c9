// One turn of a response for its environment, what the environment said, and both as JSON.
//
// A turn comes with all turns before it and the environment's last state: whoever holds no such
// environment can make it again.
//
// Thread-safety: values and pure functions.
#ifndef PACE_JUDGE_ENVIRONMENT_TURN_H_
#define PACE_JUDGE_ENVIRONMENT_TURN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "judge/reward_request.h"

namespace pace {

// What the policy wrote in one turn.
struct PolicyTurn {
  std::string text = {};  // without special tokens
  // Its tool calls: name, and arguments as JSON.
  std::vector<std::pair<std::string, std::string>> calls = {};
};

struct EnvironmentTurn {
  std::string key = {};                // names the response among all that run
  RewardRequest problem = {};          // without response, tokens and turns
  std::vector<PolicyTurn> turns = {};  // at least one; the environment takes the last
  bool last = false;                   // the response ends after this turn, whatever it says
  // The environment's state after this many turns; empty where it gave none.
  std::string state = {};
  int64_t num_restored = 0;
};

struct EnvironmentStep {
  RewardFault fault = RewardFault::kNone;
  std::string fault_message = {};  // one line, where there is a fault
  // What the response reads: a tool's text, or messages of role and content.
  std::string observation = {};
  std::vector<std::pair<std::string, std::string>> messages = {};
  std::optional<double> reward = {};
  bool done = false;
  std::optional<bool> correct = {};
  bool failed = false;      // counted as a call that failed
  std::string detail = {};  // a JSON object, or empty
  std::string state = {};   // JSON; empty where the environment offers none

  bool ok() const { return fault == RewardFault::kNone; }
  static EnvironmentStep Failed(RewardFault fault, std::string message);
};

std::string TurnJson(const EnvironmentTurn& turn);

// {"done": false, "observation": "4", "reward": null, "state": "{}", ...}, {"error": "..."} or
// {"invalid": "..."}
Result<EnvironmentStep> ParseStep(std::string_view json);

}  // namespace pace

#endif  // PACE_JUDGE_ENVIRONMENT_TURN_H_
