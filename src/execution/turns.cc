#include "execution/turns.h"

#include "rollout/turn_count.h"
#include "text/truncation.h"

namespace pace {

bool TurnRules::IsLast(const PartialResponse& response) const {
  const TurnCount turns = CountTurns(response);
  return turns.assistant >= options_.max_assistant_turns || turns.tool >= options_.max_tool_turns;
}

std::optional<ToolCall> TurnRules::CallOf(const PartialResponse& response) const {
  if (IsLast(response)) return std::nullopt;
  HermesMessage message = ParseHermes(renderer_.tokenizer().Decode(LastTurn(response)));
  if (message.calls.empty()) return std::nullopt;
  return std::move(message.calls.front());
}

EnvironmentTurn TurnRules::TurnOf(const PartialResponse& response) const {
  EnvironmentTurn turn{.last = IsLast(response)};
  std::vector<TokenId> ids;
  for (size_t i = 0; i < response.tokens.size(); ++i) {
    if (response.tokens[i].is_tool) continue;
    ids.push_back(response.tokens[i].id);
    const bool ends = i + 1 == response.tokens.size() || response.tokens[i + 1].is_tool;
    if (!ends) continue;
    PolicyTurn& said = turn.turns.emplace_back();
    said.text = renderer_.tokenizer().Decode(ids, /*skip_special=*/true);
    for (ToolCall& call : ParseHermes(renderer_.tokenizer().Decode(ids)).calls) {
      said.calls.emplace_back(std::move(call.name), std::move(call.arguments));
    }
    ids.clear();
  }
  return turn;
}

Result<std::optional<std::vector<TokenId>>> TurnRules::ReplyOf(const PartialResponse& response,
                                                               const ToolReply& reply) const {
  if (reply.ends() || (reply.step != nullptr && IsLast(response))) {
    return std::optional<std::vector<TokenId>>();
  }
  const auto cut = [this](const std::string& text) {
    return TruncateToolResponse(text, options_.max_reply, TruncationSide::kMiddle);
  };
  std::vector<ChatMessage> messages;
  if (reply.step != nullptr) {
    for (const auto& [role, content] : reply.step->messages)
      messages.push_back({role, cut(content)});
  }
  if (messages.empty()) messages.push_back({.role = "tool", .content = cut(reply.text)});
  PACE_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, renderer_.EncodeReply(messages, end_));
  const size_t length = response.tokens.size() + tokens.size();
  if (length >= static_cast<size_t>(max_tokens_)) return std::optional<std::vector<TokenId>>();
  return std::optional(std::move(tokens));
}

}  // namespace pace
