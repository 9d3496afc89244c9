// TurnRules: what follows when a response that may use a tool pauses.
//
//   paused ──► CallOf: none             it ends
//                      a call ──► the tool executor answers ──► ReplyOf: none    it ends, no room
//                                                                        tokens  it resumes
//
// The rules are those of the method: the first Hermes call of a turn counts; a turn
// without one ends the response, as do the bounds on turns; the reply is cut in the
// middle and must leave room for a token; all of it counts towards the response's budget.
// The state of a conversation follows from its tokens, so there is nothing to save.
// An environment takes every turn that ends by itself (TurnOf); it says when the response ends,
// within the same bounds.
//
// Thread-safety: immutable.
#ifndef PACE_EXECUTION_TURNS_H_
#define PACE_EXECUTION_TURNS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/tools_options.h"
#include "core/status.h"
#include "execution/tool_executor.h"
#include "judge/environment_turn.h"
#include "rollout/request.h"
#include "task/prompt_renderer.h"
#include "text/hermes.h"

namespace pace {

class TurnRules {
 public:
  // REQUIRES: the renderer has a template
  TurnRules(const ToolsOptions& options, PromptRenderer renderer, TokenId end, int64_t max_tokens)
      : options_(options), renderer_(std::move(renderer)), end_(end), max_tokens_(max_tokens) {}

  // Shows that the template can carry a reply.
  Status Check() const { return renderer_.EncodeReply("0", end_).status(); }

  // The call that a paused response makes; none where it ends.
  std::optional<ToolCall> CallOf(const PartialResponse& response) const;

  // What an environment is told of a paused response: its turns, and whether it ends here.
  EnvironmentTurn TurnOf(const PartialResponse& response) const;

  // The tool tokens of a reply; none where the response ends, or where they leave no room to
  // continue.
  Result<std::optional<std::vector<TokenId>>> ReplyOf(const PartialResponse& response,
                                                      const ToolReply& reply) const;
  Result<std::optional<std::vector<TokenId>>> ReplyOf(const PartialResponse& response,
                                                      const std::string& reply) const {
    return ReplyOf(response, ToolReply{.text = reply});
  }

 private:
  // The bounds on turns are reached.
  bool IsLast(const PartialResponse& response) const;

  ToolsOptions options_;
  PromptRenderer renderer_;
  TokenId end_;
  int64_t max_tokens_;
};

}  // namespace pace

#endif  // PACE_EXECUTION_TURNS_H_
