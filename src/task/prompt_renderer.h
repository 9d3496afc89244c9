// PromptRenderer: a Problem as the tokens that a response continues.
//
// With a chat template: a problem's text becomes one user message, the template
// opens the assistant's turn, and the result is encoded without further special
// tokens. Without one the text is encoded as it stands, with what the tokenizer
// puts around any text (a begin-of-text token, say).
//
//   Result<PromptRenderer> renderer =
//       PromptRenderer::Create(tokenizer, chat_template, settings.prompt);
//   Result<std::vector<TokenId>> ids = renderer->Render(problem);
//
// Thread-safety: immutable.
#ifndef PACE_TASK_PROMPT_RENDERER_H_
#define PACE_TASK_PROMPT_RENDERER_H_

#include <optional>
#include <string>
#include <vector>

#include "config/task_options.h"
#include "core/status.h"
#include "core/token_id.h"
#include "task/dataset.h"
#include "task/problem.h"
#include "task/synthetic_source.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {

// What the options add to a chat template's variables: enable_thinking and the
// template_variables. REQUIRES: options.Validate().ok()
ValueDict TemplateVariables(const PromptOptions& options);

class PromptRenderer {
 public:
  // `chat_template`: none where the model has none. `tools`: the list of tool
  // schemas that the template shows. Options that only a template can honour
  // are an error without one.
  static Result<PromptRenderer> Create(Tokenizer tokenizer,
                                       std::optional<ChatTemplate> chat_template,
                                       const PromptOptions& options,
                                       std::optional<Value> tools = std::nullopt);

  // The prompt's text; a conversation without a template is an error.
  Result<std::string> Text(const Prompt& prompt) const;

  // The prompt's tokens, however many.
  Result<std::vector<TokenId>> Encode(const Prompt& prompt) const;

  // The same; more than max_tokens are an error that names the problem.
  Result<std::vector<TokenId>> Render(const Problem& problem) const;

  // What follows the end token of a turn when a tool replies: the rest of that turn,
  // the reply as the template shows it, the beginning of the next turn. As the whole
  // conversation would be rendered, so that a model meets what it was trained on.
  // REQUIRES: has_template()
  Result<std::vector<TokenId>> EncodeReply(const std::string& reply, TokenId end) const {
    return EncodeReply(std::vector<ChatMessage>{{.role = "tool", .content = reply}}, end);
  }
  // The same for messages of any roles. REQUIRES: at least one
  Result<std::vector<TokenId>> EncodeReply(const std::vector<ChatMessage>& reply,
                                           TokenId end) const;
  bool has_template() const { return chat_template_.has_value(); }

  const PromptOptions& options() const { return options_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  PromptRenderer(Tokenizer tokenizer, std::optional<ChatTemplate> chat_template,
                 PromptOptions options, std::optional<Value> tools)
      : tokenizer_(std::move(tokenizer)),
        chat_template_(std::move(chat_template)),
        options_(std::move(options)),
        tools_(std::move(tools)) {}

  Result<std::string> Chat(const std::vector<ChatMessage>& messages,
                           bool add_generation_prompt = true) const;

  Tokenizer tokenizer_;
  std::optional<ChatTemplate> chat_template_;  // none also where it is not to be used
  PromptOptions options_;
  std::optional<Value> tools_;
  ValueDict variables_;
};

// The length rule over a whole dataset, before anything runs: with
// too_long = kRefuse the first prompt that is too long is an error; with kSkip
// such problems are left out, and it is an error if none is left.
struct PromptFit {
  int64_t num_skipped = 0;
  int64_t longest = 0;  // tokens of the longest prompt that stays
};
Result<PromptFit> FitPrompts(const PromptRenderer& renderer, Dataset& data);

// A supervised example as tokens: the prompt as rollouts meet it, then what the model
// says and the end token. Loss belongs on ids[num_prompt_tokens ..], except for tool tokens.
struct SftTokens {
  std::vector<TokenId> ids = {};
  int64_t num_prompt_tokens = 0;
  std::vector<bool> is_tool = {};  // of the tokens after the prompt; empty = none
};
// REQUIRES: the example has one turn
Result<SftTokens> EncodeSft(const PromptRenderer& renderer, const SftExample& example, TokenId end);

}  // namespace pace

#endif  // PACE_TASK_PROMPT_RENDERER_H_
