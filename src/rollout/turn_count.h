// The turns of a response: a run of sampled tokens is an assistant turn, a run of tool tokens a
// tool turn.
// Thread-safety: functions of their arguments.
#ifndef PACE_ROLLOUT_TURN_COUNT_H_
#define PACE_ROLLOUT_TURN_COUNT_H_

#include <cstdint>
#include <vector>

#include "core/token_id.h"
#include "rollout/request.h"

namespace pace {

struct TurnCount {
  int64_t assistant = 0;
  int64_t tool = 0;

  // As ReTool's reward counts: the prompt, the assistant turns, the tool turns.
  int64_t total() const { return 1 + assistant + tool; }
};

TurnCount CountTurns(const PartialResponse& response);

// The last assistant turn: the tokens after the last tool token.
std::vector<TokenId> LastTurn(const PartialResponse& response);

}  // namespace pace

#endif  // PACE_ROLLOUT_TURN_COUNT_H_
