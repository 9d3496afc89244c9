// The turns of a response, read off its tokens: a run of tokens that the policy sampled
// is a turn of the assistant's, a run of given ones a turn of the tool's.
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

  // As ReTool's reward counts: the question, the model's turns, the tool's.
  int64_t total() const { return 1 + assistant + tool; }
};

TurnCount CountTurns(const PartialResponse& response);

// What the policy said last: the tokens behind the last given one.
std::vector<TokenId> LastTurn(const PartialResponse& response);

}  // namespace pace

#endif  // PACE_ROLLOUT_TURN_COUNT_H_
