#include "task/prompt_renderer.h"

#include <algorithm>

#include "core/printable.h"
#include "text/python_text.h"

namespace pace {
namespace {

Value ToValue(const std::string& text) {
  Result<Value> json = ParsePythonJson(text);
  return json.ok() ? std::move(*json) : Value(text);
}

Value ToValue(const ChatMessage& message) {
  ValueDict dict;
  dict.Put("role", Value(message.role));
  dict.Put("content", Value(message.content));
  return Value::MakeDict(std::move(dict));
}

Status TooLong(const std::string& id, size_t num_tokens, int64_t max_tokens) {
  return InvalidArgument("problem ", Printable(id), ": a prompt of ", num_tokens,
                         " tokens: at most prompt.max_tokens = ", max_tokens,
                         " (prompt.too_long = skip leaves such problems of a dataset out)");
}

}  // namespace

ValueDict TemplateVariables(const PromptOptions& options) {
  ValueDict variables;
  if (options.thinking != Thinking::kAuto) {
    variables.Put("enable_thinking", Value(options.thinking == Thinking::kOn));
  }
  for (const std::string& variable : options.template_variables) {
    const size_t equals = variable.find('=');
    variables.Put(variable.substr(0, equals), ToValue(variable.substr(equals + 1)));
  }
  return variables;
}

Result<PromptRenderer> PromptRenderer::Create(Tokenizer tokenizer,
                                              std::optional<ChatTemplate> chat_template,
                                              const PromptOptions& options,
                                              std::optional<Value> tools) {
  PACE_RETURN_IF_ERROR(options.Validate());
  if (options.chat == ChatUse::kNever) chat_template.reset();
  PromptRenderer renderer(std::move(tokenizer), std::move(chat_template), options,
                          std::move(tools));
  renderer.variables_ = TemplateVariables(options);
  const bool asks = !options.system.empty() || !renderer.variables_.entries().empty() ||
                    renderer.tools_.has_value();
  if (asks && !renderer.chat_template_.has_value()) {
    return InvalidArgument(
        "prompt: a system message, thinking, template variables or tools need a chat template, "
        "and ",
        options.chat == ChatUse::kNever ? "prompt.chat is never" : "the model has none");
  }
  return renderer;
}

Result<std::string> PromptRenderer::Chat(const std::vector<ChatMessage>& messages,
                                         bool add_generation_prompt) const {
  ValueList list;
  const bool has_system = !messages.empty() && messages.front().role == "system";
  if (!options_.system.empty() && !has_system) {
    list.push_back(ToValue(ChatMessage{.role = "system", .content = options_.system}));
  }
  for (const ChatMessage& message : messages) list.push_back(ToValue(message));
  ChatInputs inputs;
  inputs.messages = Value::MakeList(std::move(list));
  inputs.tools = tools_;
  inputs.add_generation_prompt = add_generation_prompt;
  inputs.extra = variables_;
  return chat_template_->Render(inputs);
}

Result<std::string> PromptRenderer::Text(const Prompt& prompt) const {
  const auto* text = std::get_if<std::string>(&prompt);
  if (!chat_template_.has_value()) {
    if (text != nullptr) return *text;
    return InvalidArgument(
        "the prompt is a conversation: the model needs a chat template, and ",
        options_.chat == ChatUse::kNever ? "prompt.chat must not be never" : "it has none");
  }
  if (text != nullptr) return Chat({ChatMessage{.role = "user", .content = *text}});
  return Chat(std::get<std::vector<ChatMessage>>(prompt));
}

Result<std::vector<TokenId>> PromptRenderer::Encode(const Prompt& prompt) const {
  PACE_ASSIGN_OR_RETURN(const std::string text, Text(prompt));
  return tokenizer_.Encode(text, /*add_special_tokens=*/!chat_template_.has_value());
}

Result<std::vector<TokenId>> PromptRenderer::EncodeReply(const std::vector<ChatMessage>& reply,
                                                         TokenId end) const {
  std::vector<ChatMessage> messages = {{.role = "user", .content = "0"},
                                       {.role = "assistant", .content = "0"}};
  PACE_ASSIGN_OR_RETURN(const std::string before, Chat(messages, /*add_generation_prompt=*/false));
  messages.insert(messages.end(), reply.begin(), reply.end());
  PACE_ASSIGN_OR_RETURN(const std::string after, Chat(messages));
  const std::string end_text = tokenizer_.Decode(std::vector<TokenId>{end}, false);
  const size_t at = before.rfind(end_text);
  if (at == std::string::npos || !after.starts_with(before)) {
    return InvalidArgument(
        "tools.use: the chat template does not show a tool's reply behind a "
        "turn that ends in ",
        Printable(end_text));
  }
  return tokenizer_.Encode(after.substr(at + end_text.size()));
}

Result<std::vector<TokenId>> PromptRenderer::Render(const Problem& problem) const {
  Result<std::vector<TokenId>> ids = Encode(problem.prompt);
  if (!ids.ok()) return ids.status().At("problem " + Printable(problem.id));
  if (ids->empty()) {
    return InvalidArgument("problem ", Printable(problem.id), ": a prompt of no tokens");
  }
  if (ids->size() > static_cast<size_t>(options_.max_tokens)) {
    return TooLong(problem.id, ids->size(), options_.max_tokens);
  }
  return ids;
}

Result<PromptFit> FitPrompts(const PromptRenderer& renderer, Dataset& data) {
  const int64_t max_tokens = renderer.options().max_tokens;
  PromptFit fit;
  const auto keep = [&](const Problem& problem) -> Result<bool> {
    const Result<std::vector<TokenId>> ids = renderer.Encode(problem.prompt);
    if (!ids.ok()) return ids.status().At("problem " + Printable(problem.id));
    const auto num_tokens = static_cast<int64_t>(ids->size());
    if (num_tokens <= max_tokens) {
      fit.longest = std::max(fit.longest, num_tokens);
      return true;
    }
    if (renderer.options().too_long == LongPrompts::kRefuse) {
      return TooLong(problem.id, ids->size(), max_tokens);
    }
    ++fit.num_skipped;
    return false;
  };
  PACE_RETURN_IF_ERROR(data.Keep(keep));
  if (data.size() == 0) {
    return InvalidArgument(data.name(), ": all ", fit.num_skipped,
                           " prompts are longer than prompt.max_tokens = ", max_tokens);
  }
  return fit;
}

Result<SftTokens> EncodeSft(const PromptRenderer& renderer, const SftExample& example,
                            TokenId end) {
  PACE_ASSIGN_OR_RETURN(std::vector<TokenId> ids, renderer.Encode(example.prompt));
  PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> completion,
                        renderer.tokenizer().Encode(example.turns.front()));
  SftTokens tokens{.ids = std::move(ids)};
  tokens.num_prompt_tokens = static_cast<int64_t>(tokens.ids.size());
  tokens.ids.insert(tokens.ids.end(), completion.begin(), completion.end());
  tokens.ids.push_back(end);
  return tokens;
}

}  // namespace pace
