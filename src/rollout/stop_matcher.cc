#include "rollout/stop_matcher.h"

#include <algorithm>

#include "core/check.h"

namespace pace {

StopMatcher::StopMatcher(const StopRules* rules, const Tokenizer* tokenizer, int64_t member)
    : rules_(rules), tokenizer_(tokenizer), max_tokens_(rules->MaxTokensOf(member)) {
  for (const std::string& text : rules_->stop_strings) {
    PACE_CHECK(!text.empty() && tokenizer_ != nullptr, "a stop string that cannot be found");
    max_tail_ = std::max(max_tail_, text.size() - 1);
  }
}

void StopMatcher::Skip(TokenId id) {
  ++num_tokens_;
  if (rules_->stop_strings.empty()) return;
  Append(id);
  CutTail();
}

std::optional<FinishReason> StopMatcher::Feed(TokenId id) {
  ++num_tokens_;
  const auto at_most = [this]() -> std::optional<FinishReason> {
    if (num_tokens_ >= max_tokens_) return FinishReason::kMaxTokens;
    return std::nullopt;
  };
  if (!rules_->lengths.empty()) return at_most();
  const auto& stop_tokens = rules_->stop_tokens;
  if (std::find(stop_tokens.begin(), stop_tokens.end(), id) != stop_tokens.end()) {
    return FinishReason::kStopToken;
  }
  if (!rules_->stop_strings.empty()) {
    const size_t num_old = Append(id);
    for (const std::string& text : rules_->stop_strings) {
      // What lies in the old bytes alone has been looked at before.
      const size_t from = num_old - std::min(num_old, text.size() - 1);
      if (tail_.find(text, from) != std::string::npos) return FinishReason::kStopString;
    }
    CutTail();
  }
  return at_most();
}

size_t StopMatcher::Append(TokenId id) {
  const size_t num_old = tail_.size();
  if (tokenizer_->AppendBytes(id, /*skip_special=*/false, is_first_, tail_)) is_first_ = false;
  return num_old;
}

void StopMatcher::CutTail() {
  if (tail_.size() > max_tail_) tail_.erase(0, tail_.size() - max_tail_);
}

}  // namespace pace
