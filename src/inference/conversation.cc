#include "inference/conversation.h"

#include <string_view>

#include "core/check.h"
#include "text/value.h"

namespace pace {

Conversation::Conversation(Tokenizer tokenizer, std::optional<ChatTemplate> chat,
                           std::string system, ValueDict variables)
    : tokenizer_(std::move(tokenizer)),
      chat_(std::move(chat)),
      system_(std::move(system)),
      variables_(std::move(variables)) {
  Reset();
}

void Conversation::Reset() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back({"system", system_});
  said_.reset();
  tokens_.clear();
  rendered_.clear();
  reply_.clear();
  ending_.clear();
}

Result<std::string> Conversation::Render(std::span<const Message> messages) const {
  ValueList list;
  for (const Message& message : messages) {
    ValueDict dict;
    dict.Put("role", Value(message.role));
    dict.Put("content", Value(message.content));
    list.push_back(Value::MakeDict(std::move(dict)));
  }
  ChatInputs inputs;
  inputs.messages = Value::MakeList(std::move(list));
  inputs.add_generation_prompt = true;
  inputs.extra = variables_;
  return chat_->Render(inputs);
}

std::optional<std::string> Conversation::NewText(const std::string& rendered) const {
  std::string_view rest = rendered;
  for (const std::string_view part : {std::string_view(rendered_), std::string_view(reply_)}) {
    if (!rest.starts_with(part)) return std::nullopt;
    rest.remove_prefix(part.size());
  }
  // The history has that token already.
  if (!rest.starts_with(ending_)) return std::nullopt;
  return std::string(rest.substr(ending_.size()));
}

Result<Conversation::Prompt> Conversation::SayWithTemplate() {
  std::vector<Message> messages = messages_;
  messages.push_back(*said_);
  PACE_ASSIGN_OR_RETURN(pending_rendered_, Render(messages));
  Prompt prompt;
  const std::optional<std::string> text =
      tokens_.empty() ? pending_rendered_ : NewText(pending_rendered_);
  prompt.retokenized = !text.has_value();
  if (text.has_value()) prompt.tokens = tokens_;
  PACE_ASSIGN_OR_RETURN(
      const std::vector<TokenId> ids,
      tokenizer_.Encode(text.value_or(pending_rendered_), /*add_special_tokens=*/false));
  prompt.tokens.insert(prompt.tokens.end(), ids.begin(), ids.end());
  return prompt;
}

// A text that has ended is followed by the beginning of another.
Result<Conversation::Prompt> Conversation::SayPlainly(const std::string& text) const {
  const bool begins = tokens_.empty() || !ending_.empty();
  PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, tokenizer_.Encode(text, begins));
  Prompt prompt{.tokens = tokens_, .retokenized = false};
  prompt.tokens.insert(prompt.tokens.end(), ids.begin(), ids.end());
  return prompt;
}

Result<Conversation::Prompt> Conversation::Say(const std::string& text) {
  said_ = Message{"user", text};
  return chat_.has_value() ? SayWithTemplate() : SayPlainly(text);
}

void Conversation::Reply(const Prompt& prompt, std::span<const TokenId> tokens, bool ended) {
  PACE_CHECK(said_.has_value(), "a reply to nothing");
  messages_.push_back(*std::exchange(said_, std::nullopt));
  tokens_ = prompt.tokens;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  rendered_ = pending_rendered_;
  ending_.clear();
  if (ended && !tokens.empty()) {
    ending_ = tokenizer_.Decode(tokens.last(1), /*skip_special=*/false);
    tokens = tokens.first(tokens.size() - 1);
  }
  reply_ = tokenizer_.Decode(tokens, /*skip_special=*/true);
  messages_.push_back({"assistant", reply_});
}

}  // namespace pace
