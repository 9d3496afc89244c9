#include "execution/turns.h"

#include "rollout/turn_count.h"
#include "text/truncation.h"

namespace pace {

std::optional<ToolCall> TurnRules::CallOf(const PartialResponse& response) const {
  const TurnCount turns = CountTurns(response);
  if (turns.assistant >= options_.max_assistant_turns || turns.tool >= options_.max_tool_turns) {
    return std::nullopt;
  }
  HermesMessage message = ParseHermes(renderer_.tokenizer().Decode(LastTurn(response)));
  if (message.calls.empty()) return std::nullopt;
  return std::move(message.calls.front());
}

Result<std::optional<std::vector<TokenId>>> TurnRules::ReplyOf(const PartialResponse& response,
                                                               const std::string& reply) const {
  PACE_ASSIGN_OR_RETURN(
      std::vector<TokenId> tokens,
      renderer_.EncodeReply(
          TruncateToolResponse(reply, options_.max_reply, TruncationSide::kMiddle), end_));
  const size_t length = response.tokens.size() + tokens.size();
  if (length >= static_cast<size_t>(max_tokens_)) return std::optional<std::vector<TokenId>>();
  return std::optional(std::move(tokens));
}

}  // namespace pace
