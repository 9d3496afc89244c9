#include "rollout/turn_count.h"

#include <algorithm>

namespace pace {

TurnCount CountTurns(const PartialResponse& response) {
  TurnCount count;
  for (size_t i = 0; i < response.tokens.size(); ++i) {
    const bool is_tool = response.tokens[i].is_tool;
    if (i > 0 && response.tokens[i - 1].is_tool == is_tool) continue;
    ++(is_tool ? count.tool : count.assistant);
  }
  return count;
}

std::vector<TokenId> LastTurn(const PartialResponse& response) {
  const auto begin =
      std::find_if(response.tokens.rbegin(), response.tokens.rend(), [](const TokenRecord& token) {
        return token.is_tool;
      }).base();
  std::vector<TokenId> ids;
  for (auto token = begin; token != response.tokens.end(); ++token) ids.push_back(token->id);
  return ids;
}

}  // namespace pace
