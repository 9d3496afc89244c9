#include "engines/answer_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/printable.h"
#include "core/random.h"

namespace pace {
namespace {

constexpr uint32_t kSeedStream = 0x656E67;  // "eng"

std::optional<int64_t> NumberIn(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

bool Contains(const std::vector<TokenId>& tokens, TokenId id) {
  return std::find(tokens.begin(), tokens.end(), id) != tokens.end();
}

// The version of a label; none where it is not of this run.
std::optional<PolicyVersion> VersionIn(std::string_view label, std::string_view run) {
  const size_t colon = label.rfind(':');
  if (colon == std::string_view::npos || label.substr(0, colon) != run) return std::nullopt;
  const std::optional<int64_t> step = NumberIn(label.substr(colon + 1));
  return step.has_value() ? std::optional(PolicyVersion(*step)) : std::nullopt;
}

}  // namespace

Status CheckAnswer(const GenerateCall& call, const GenerateAnswer& answer, int64_t vocabulary) {
  const auto count = static_cast<int64_t>(answer.tokens.size());
  if (count > call.max_tokens) {
    return InvalidArgument("has ", count, " tokens of at most ", call.max_tokens);
  }
  for (size_t i = 0; i < answer.tokens.size(); ++i) {
    const TokenId id = answer.tokens[i];
    if (id < 0 || id >= vocabulary) {
      return InvalidArgument("token ", i, " = ", id, ": must be less than ", vocabulary);
    }
    if (i + 1 < answer.tokens.size() && Contains(call.stop_tokens, id)) {
      return InvalidArgument("token ", i, " = ", id, ": is a stop token, and more follow it");
    }
  }
  const bool stops = count > 0 && Contains(call.stop_tokens, answer.tokens.back());
  if (answer.end == AnswerEnd::kStop && !stops && call.stop_strings.empty()) {
    return InvalidArgument("says that it met a stop token, and did not");
  }
  if (answer.end == AnswerEnd::kStop && count == 0) {
    return InvalidArgument("stops without a token");
  }
  if (answer.end == AnswerEnd::kLength && count != call.max_tokens) {
    return InvalidArgument("says that it is full with ", count, " tokens of ", call.max_tokens);
  }
  return CheckScores(call, answer);
}

Status CheckScores(const GenerateCall& call, const GenerateAnswer& answer) {
  if (!call.first_scored.has_value()) return Status::Ok();
  const size_t num_scored = call.tokens.size() - static_cast<size_t>(*call.first_scored);
  if (answer.scores.size() == num_scored) return Status::Ok();
  // A request that ended before its prompt was read has none, or the first ones.
  if (answer.end == AnswerEnd::kAbort && answer.scores.size() < num_scored) return Status::Ok();
  return InvalidArgument("has ", answer.scores.size(), " scores of ", num_scored);
}

Status CheckShape(const ServerFacts& facts, const NetworkShape& policy) {
  const NetworkShape& server = facts.shape;
  const auto differs = [](int64_t a, int64_t b) { return a != 0 && b != 0 && a != b; };
  if (!differs(server.num_layers, policy.num_layers) &&
      !differs(server.hidden_size, policy.hidden_size) &&
      !differs(server.vocabulary, policy.vocabulary)) {
    return Status::Ok();
  }
  return InvalidArgument("serves ", Printable(facts.model), ", a network of ", server.num_layers,
                         " layers of ", server.hidden_size, " for ", server.vocabulary,
                         " tokens: must be the policy's, ", policy.num_layers, " layers of ",
                         policy.hidden_size, " for ", policy.vocabulary);
}

Status CheckFacts(const ServerFacts& facts, const RemoteOptions& options, bool needs_versions) {
  if (facts.max_tokens.has_value() && *facts.max_tokens < options.max_context) {
    return InvalidArgument("has room for ", *facts.max_tokens, " tokens: must be at least ",
                           options.max_context, " for a prompt with its response");
  }
  if (options.weights == WeightPath::kChannel && !facts.no_channel.empty()) {
    return InvalidArgument("engine.transfer = nccl: the server's ", facts.no_channel);
  }
  PACE_RETURN_IF_ERROR(CheckShape(facts, options.shape));
  if (facts.probe.has_value() && !options.probe.empty() && *facts.probe != options.probe) {
    return InvalidArgument("serves ", Printable(facts.model),
                           ", whose tokenizer is not the policy's");
  }
  if (needs_versions && !facts.tells_versions) {
    return InvalidArgument(
        "does not say which weights sampled which token, which engine.sync "
        "needs without prefix scores (use a newer server)");
  }
  return Status::Ok();
}

std::string LabelOf(std::string_view run, PolicyVersion version) {
  return Concat(run, ":", version.step());
}

bool IsOfAnotherRun(std::string_view label, std::string_view run) {
  const size_t colon = label.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == label.size()) return false;
  const std::string_view step = label.substr(colon + 1);
  return step.find_first_not_of("0123456789") == std::string_view::npos &&
         label.substr(0, colon) != run;
}

Status CheckLabel(std::string_view label, std::string_view run, PolicyVersion given) {
  const std::string ours = LabelOf(run, given);
  if (label == ours) return Status::Ok();
  return InvalidArgument(
      "serves weights ", Printable(label), ", not ", ours, " that this run gave it",
      IsOfAnotherRun(label, run) ? ": another run uses the server" : " (was it restarted?)");
}

PolicyVersion NewestOf(const PartialResponse& response) {
  return response.tokens.empty() ? PolicyVersion(0) : response.tokens.back().version;
}

TokenVersions VersionsOf(const GenerateAnswer& answer, std::string_view run, PolicyVersion oldest,
                         PolicyVersion newest) {
  const auto count = static_cast<int64_t>(answer.tokens.size());
  TokenVersions read{.versions = std::vector<PolicyVersion>(answer.tokens.size(), newest)};
  PolicyVersion last = oldest;
  int64_t at = 0;
  for (const VersionSpan& span : answer.spans) {
    if (span.end == span.start && span.start == at) continue;  // of no token
    if (span.start != at || span.end < span.start || span.end > count) {
      read.status = InvalidArgument("weight_versions: [", span.start, ", ", span.end, ") after ",
                                    at, " of ", count, " tokens");
      return read;
    }
    const std::optional<PolicyVersion> version = VersionIn(span.label, run);
    if (!version.has_value()) {
      read.foreign = IsOfAnotherRun(span.label, run);
      read.status = InvalidArgument(
          "sampled with weights ", Printable(span.label), ", which are not of ", run,
          read.foreign ? ": another run uses the server" : " (was the server restarted?)");
      return read;
    }
    if (*version < last || *version > newest) {
      read.status = InvalidArgument("weight_versions: version ", *version, " after ", last,
                                    ", the newest is ", newest);
      return read;
    }
    last = *version;
    at = span.end;
    std::fill(read.versions.begin() + span.start, read.versions.begin() + span.end, *version);
  }
  if (!answer.spans.empty() && at != count) {
    read.status = InvalidArgument("weight_versions: end at ", at, " of ", count, " tokens");
  }
  return read;
}

void TakeScore(std::span<const float> scores, int64_t max_scored, PartialResponse& response) {
  if (!response.awaits_score || scores.size() < response.tokens.size()) return;
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < response.tokens.size() && i < scores.size(); ++i) {
    const TokenRecord& token = response.tokens[i];
    if (token.is_tool) continue;
    if (count == max_scored) break;
    sum += std::abs(static_cast<double>(scores[i]) - static_cast<double>(token.logprob));
    ++count;
  }
  if (count > 0) response.prefix_score = sum / static_cast<double>(count);
  response.awaits_score = false;
}

uint64_t SeedOf(const GroupRequest& request, int64_t member, size_t num_tokens) {
  const CounterRandom random(request.seed, kSeedStream);
  const uint64_t response =
      random.Bits(static_cast<uint64_t>(request.prompt.value()), static_cast<uint64_t>(member));
  return CounterRandom(response, kSeedStream).Bits(num_tokens);
}

std::optional<FinishReason> StopReasonOf(const StopRules& stop, std::span<const TokenRecord> tokens,
                                         AnswerEnd end) {
  const bool fixed_length = !stop.lengths.empty();
  if (!fixed_length && !tokens.empty() && !tokens.back().is_tool &&
      std::ranges::find(stop.stop_tokens, tokens.back().id) != stop.stop_tokens.end()) {
    return FinishReason::kStopToken;
  }
  if (end == AnswerEnd::kStop) return FinishReason::kStopString;
  return std::nullopt;
}

}  // namespace pace
