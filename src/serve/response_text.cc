#include "serve/response_text.h"

#include <algorithm>
#include <utility>

namespace pace {
namespace {

// The last position at or before `at` where a character begins.
size_t CharacterStart(const std::string& text, size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

ResponseText::ResponseText(const Tokenizer& tokenizer, TextRules rules)
    : rules_(std::move(rules)), decoder_(tokenizer, rules_.skip_special_tokens) {
  for (const std::string& stop : rules_.stop) {
    max_held_ = std::max(max_held_, rules_.include_stop ? 0 : stop.size() - 1);
  }
}

std::string ResponseText::TakeSettled(size_t num_held) {
  const size_t held = std::min(num_held, pending_.size());
  const size_t end = CharacterStart(pending_, pending_.size() - held);
  std::string settled = pending_.substr(0, end);
  pending_.erase(0, end);
  return settled;
}

std::string ResponseText::Feed(TokenId id) {
  const std::optional<TokenId> decoded = std::exchange(last_, id);
  if (decoded) pending_ += decoder_.Feed(*decoded).value_or("");
  return TakeSettled(max_held_);
}

std::string ResponseText::Finish(std::optional<FinishReason> reason) {
  const bool drops_last = reason == FinishReason::kStopToken && !rules_.include_stop;
  if (last_ && !drops_last) pending_ += decoder_.Feed(*last_).value_or("");
  pending_ += decoder_.Finish();
  last_.reset();
  if (reason == FinishReason::kStopString && !rules_.include_stop) {
    size_t end = pending_.size();
    for (const std::string& stop : rules_.stop) end = std::min(end, pending_.find(stop));
    pending_.resize(end);
  }
  return TakeSettled(0);
}

std::optional<std::string> MatchedStop(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                                       std::span<const std::string> stop) {
  std::string bytes;
  size_t before_last = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    before_last = bytes.size();
    tokenizer.AppendBytes(ids[i], /*skip_special=*/false, /*is_first=*/i == 0, bytes);
  }
  for (const std::string& text : stop) {
    const size_t from = before_last + 1 > text.size() ? before_last + 1 - text.size() : 0;
    if (bytes.find(text, from) != std::string::npos) return text;
  }
  return std::nullopt;
}

}  // namespace pace
