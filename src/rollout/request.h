// Requests to a rollout engine and its responses.
#ifndef PACE_ROLLOUT_REQUEST_H_
#define PACE_ROLLOUT_REQUEST_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/status.h"
#include "core/token_id.h"
#include "core/version.h"
#include "model/model_config.h"
#include "model/sampling.h"

namespace pace {

// One token of a response, with the policy that sampled it.
struct TokenRecord {
  TokenId id = 0;
  // A tool token: context that no policy sampled. It has no log-probability, and the version of
  // the token before it.
  bool is_tool = false;
  PolicyVersion version{};
  float logprob = 0;          // under the full distribution of that policy
  float sampled_logprob = 0;  // under the truncated one; equal where nothing is cut

  friend bool operator==(const TokenRecord&, const TokenRecord&) = default;
};

// When a response ends. Where one token meets several rules, the first of stop
// token, stop string, max_tokens is the reason.
struct StopRules {
  int64_t max_tokens = 0;              // of the whole response, at least 1
  std::vector<TokenId> stop_tokens{};  // the token that ends it is part of it
  // In the response's decoded text, special tokens included as they are
  // written; the token that completes one is the last.
  std::vector<std::string> stop_strings{};
  // Empty, or the exact number of tokens of each of the n members, whatever it samples. For
  // measurements.
  std::vector<int64_t> lengths{};
  // A stop token or string pauses the response instead of ending it, until EngineCore::Continue
  // or FinishPaused.
  bool pauses = false;

  // The maximum for a member.
  int64_t MaxTokensOf(int64_t member) const {
    return lengths.empty() ? max_tokens : lengths[static_cast<size_t>(member)];
  }
};

enum class FinishReason { kStopToken, kStopString, kMaxTokens };

// "stop_token", "stop_string", "max_tokens".
std::string_view FinishReasonName(FinishReason reason);

// A response so far: what a checkpoint stores, and what a resumed request starts from.
struct PartialResponse {
  std::vector<TokenRecord> tokens{};
  // mean |log-prob under the newest version it was scored for - recorded one|.
  std::optional<double> prefix_score{};
  // A sync interrupted it and its new prefix score is not computed yet.
  bool awaits_score = false;
  // Syncs that happened while it was unfinished and had at least one token.
  int64_t num_interrupts = 0;
  // The rule at which it paused, while it is paused.
  std::optional<FinishReason> paused{};
  // With GroupRequest::score_prompt: the log-probabilities of the prompt's tokens but the first,
  // at temperature 1, under the weights that sampled the first token. As many as are computed.
  std::vector<float> prompt_logprobs{};

  int64_t num_policy_tokens() const {
    return std::count_if(tokens.begin(), tokens.end(),
                         [](const TokenRecord& token) { return !token.is_tool; });
  }

  friend bool operator==(const PartialResponse&, const PartialResponse&) = default;
};

// The n responses to one prompt; they share the prompt's prefill.
struct GroupRequest {
  GroupId group{};
  PromptIndex prompt{};  // with the seed, keys the random numbers
  uint64_t seed = 0;
  std::vector<TokenId> prompt_tokens{};  // at least 1
  int64_t num_responses = 1;
  SamplingOptions sampling{};
  // The one of the n that is decoded greedily whatever `sampling` says, if any.
  std::optional<int64_t> greedy_member{};
  StopRules stop{};
  // Compute the prompt's log-probabilities. Of one response alone.
  bool score_prompt = false;
  // Of servers: the version that samples every token. Later syncs wait until the group has ended;
  // a group whose version has passed is refused. Such groups are not part of a checkpoint.
  std::optional<PolicyVersion> only_version{};
  // Which of the n to generate, in rising order; empty = all.
  std::vector<int64_t> members{};
  // Empty, or one for each of these: the response to resume.
  std::vector<PartialResponse> resumed{};

  // The number of requested responses, and the index of the i-th in its group.
  int64_t num_members() const {
    return members.empty() ? num_responses : static_cast<int64_t>(members.size());
  }
  int64_t member(int64_t i) const { return members.empty() ? i : members[static_cast<size_t>(i)]; }
  // How that member of the group is sampled.
  SamplingOptions SamplingOf(int64_t member) const {
    return greedy_member == member ? SamplingOptions{.temperature = 0} : sampling;
  }
};

// What a request must satisfy for a network of this shape: ids in the
// vocabulary, prompt and max_tokens within the positions, numbers that random
// keys can hold. Stop strings need a tokenizer.
Status CheckRequest(const GroupRequest& request, const ModelConfig& config, bool has_tokenizer);

// The same for tool tokens: ids in the vocabulary, and room for at least one more token after
// them.
Status CheckToolTokens(const GroupRequest& request, const PartialResponse& response,
                       std::span<const TokenId> tool_tokens, const ModelConfig& config);

struct MemberId {
  GroupId group{};
  int64_t member = 0;
  friend auto operator<=>(const MemberId&, const MemberId&) = default;
};

struct FinishedResponse {
  MemberId id{};
  PartialResponse response{};
  FinishReason reason = FinishReason::kMaxTokens;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_REQUEST_H_
