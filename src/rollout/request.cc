#include "rollout/request.h"

#include <span>

#include "core/check.h"
#include "core/utf8.h"

namespace pace {
namespace {

// SampleKey has room for these.
constexpr int64_t kMaxPrompt = int64_t{1} << 40;
constexpr int64_t kMaxResponses = int64_t{1} << 24;

Status CheckId(TokenId id, const ModelConfig& config, std::string_view what, size_t at) {
  if (id >= 0 && id < config.vocab_size) return Status::Ok();
  return InvalidArgument(what, "[", at, "] = ", id, ": must be an id of the vocabulary, 0 to ",
                         config.vocab_size - 1);
}

Status CheckIds(std::span<const TokenId> ids, const ModelConfig& config, std::string_view what) {
  for (size_t i = 0; i < ids.size(); ++i) {
    PACE_RETURN_IF_ERROR(CheckId(ids[i], config, what, i));
  }
  return Status::Ok();
}

Status CheckStop(const StopRules& stop, const ModelConfig& config, int64_t num_prompt_tokens,
                 bool has_tokenizer) {
  if (stop.max_tokens < 1) {
    return InvalidArgument("stop.max_tokens = ", stop.max_tokens, ": must be >= 1");
  }
  if (stop.max_tokens > config.max_positions - num_prompt_tokens) {
    return InvalidArgument("stop.max_tokens = ", stop.max_tokens, " after a prompt of ",
                           num_prompt_tokens, ": the model has ", config.max_positions,
                           " positions");
  }
  PACE_RETURN_IF_ERROR(CheckIds(stop.stop_tokens, config, "stop.stop_tokens"));
  if (!stop.stop_strings.empty() && !has_tokenizer) {
    return InvalidArgument("stop.stop_strings: the engine has no tokenizer to find them with");
  }
  for (size_t i = 0; i < stop.stop_strings.size(); ++i) {
    if (stop.stop_strings[i].empty() || !IsWellFormed(stop.stop_strings[i])) {
      return InvalidArgument("stop.stop_strings[", i, "]: must be UTF-8 and not empty");
    }
  }
  return Status::Ok();
}

Status CheckLengths(const GroupRequest& request) {
  const std::vector<int64_t>& lengths = request.stop.lengths;
  if (lengths.empty()) return Status::Ok();
  if (std::ssize(lengths) != request.num_responses) {
    return InvalidArgument("stop.lengths: ", lengths.size(), " for ", request.num_responses,
                           " responses");
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] >= 1 && lengths[i] <= request.stop.max_tokens) continue;
    return InvalidArgument("stop.lengths[", i, "] = ", lengths[i], ": must be 1 to max_tokens, ",
                           request.stop.max_tokens);
  }
  if (request.stop.pauses) {
    return InvalidArgument("stop.lengths: a response of a fixed length cannot pause");
  }
  return Status::Ok();
}

Status CheckMembers(const GroupRequest& request) {
  if (request.num_responses < 1 || request.num_responses > kMaxResponses) {
    return InvalidArgument("num_responses = ", request.num_responses, ": must be 1 to ",
                           kMaxResponses);
  }
  if (request.greedy_member.has_value() &&
      (*request.greedy_member < 0 || *request.greedy_member >= request.num_responses)) {
    return InvalidArgument("greedy_member = ", *request.greedy_member, ": must be 0 to ",
                           request.num_responses - 1);
  }
  for (size_t i = 0; i < request.members.size(); ++i) {
    const int64_t member = request.members[i];
    const int64_t least = i == 0 ? 0 : request.members[i - 1] + 1;
    if (member < least || member >= request.num_responses) {
      return InvalidArgument("members[", i, "] = ", member, ": must rise and be below ",
                             request.num_responses);
    }
  }
  return Status::Ok();
}

Status CheckResumed(const GroupRequest& request, const ModelConfig& config) {
  if (request.resumed.empty()) return Status::Ok();
  if (static_cast<int64_t>(request.resumed.size()) != request.num_members()) {
    return InvalidArgument("resumed: ", request.resumed.size(), " responses for ",
                           request.num_members(), " members");
  }
  for (size_t i = 0; i < request.resumed.size(); ++i) {
    const PartialResponse& response = request.resumed[i];
    const int64_t most = request.stop.MaxTokensOf(request.member(static_cast<int64_t>(i)));
    if (std::ssize(response.tokens) >= most) {
      return InvalidArgument("resumed[", i, "]: has ", response.tokens.size(),
                             " tokens already, of at most ", most);
    }
    if (response.paused.has_value() && !request.stop.pauses) {
      return InvalidArgument("resumed[", i, "]: is paused, but stop.pauses is false");
    }
    if (!response.tokens.empty() && response.tokens.front().is_tool) {
      return InvalidArgument("resumed[", i, "]: begins with a tool token");
    }
    if (response.awaits_score && response.tokens.empty()) {
      return InvalidArgument("resumed[", i, "]: awaits a score, but has no tokens");
    }
    if (response.prompt_logprobs.size() >= request.prompt_tokens.size()) {
      return InvalidArgument("resumed[", i, "]: has ", response.prompt_logprobs.size(),
                             " scores of ", request.prompt_tokens.size(), " prompt tokens");
    }
    for (size_t t = 0; t < response.tokens.size(); ++t) {
      PACE_RETURN_IF_ERROR(CheckId(response.tokens[t].id, config, Concat("resumed[", i, "]"), t));
    }
  }
  return Status::Ok();
}

}  // namespace

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopToken:
      return "stop_token";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kMaxTokens:
      return "max_tokens";
  }
  PACE_CHECK(false, "unknown reason");
}

Status CheckRequest(const GroupRequest& request, const ModelConfig& config, bool has_tokenizer) {
  if (request.prompt_tokens.empty()) {
    return InvalidArgument("prompt_tokens: must hold at least one id");
  }
  if (request.prompt.value() < 0 || request.prompt.value() >= kMaxPrompt) {
    return InvalidArgument("prompt = ", request.prompt, ": must be between 0 and 2^40 - 1");
  }
  PACE_RETURN_IF_ERROR(CheckIds(request.prompt_tokens, config, "prompt_tokens"));
  PACE_RETURN_IF_ERROR(request.sampling.Validate().At("sampling"));
  PACE_RETURN_IF_ERROR(CheckStop(
      request.stop, config, static_cast<int64_t>(request.prompt_tokens.size()), has_tokenizer));
  PACE_RETURN_IF_ERROR(CheckMembers(request));
  if (request.score_prompt && request.num_members() != 1) {
    return InvalidArgument("score_prompt: ", request.num_members(),
                           " responses (it is for one response)");
  }
  PACE_RETURN_IF_ERROR(CheckLengths(request));
  return CheckResumed(request, config);
}

Status CheckToolTokens(const GroupRequest& request, const PartialResponse& response,
                       std::span<const TokenId> tool_tokens, const ModelConfig& config) {
  const size_t num_tokens = response.tokens.size() + tool_tokens.size();
  if (static_cast<int64_t>(num_tokens) >= request.stop.max_tokens) {
    return InvalidArgument("tool_tokens: ", tool_tokens.size(), " tokens after ",
                           response.tokens.size(), " leave no room, max_tokens is ",
                           request.stop.max_tokens);
  }
  return CheckIds(tool_tokens, config, "tool_tokens");
}

}  // namespace pace
