// What of a server's answer can be believed, and what it means for a response.
//
// Thread-safety: pure functions.
#ifndef PACE_ENGINES_ANSWER_CHECK_H_
#define PACE_ENGINES_ANSWER_CHECK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/version.h"
#include "engines/dialect.h"
#include "engines/remote_options.h"
#include "rollout/request.h"

namespace pace {

// Whether an answer is one to this call: token ids of the vocabulary, no more than asked for,
// nothing behind a stop token, an end that its tokens bear out, all scores.
Status CheckAnswer(const GenerateCall& call, const GenerateAnswer& answer, int64_t vocabulary);
// The last of these alone.
Status CheckScores(const GenerateCall& call, const GenerateAnswer& answer);

// Whether a server's network is the policy's, as far as both are known.
Status CheckShape(const ServerFacts& facts, const NetworkShape& policy);

// Whether a server can serve a run: room, network, tokenizer and, where they are needed, versions.
Status CheckFacts(const ServerFacts& facts, const RemoteOptions& options, bool needs_versions);

// The label of a run's weights, RUN:STEP.
std::string LabelOf(std::string_view run, PolicyVersion version);
// Whether the label has the form RUN:STEP and names another run. A label of any other form belongs
// to no run: servers have one when they start.
bool IsOfAnotherRun(std::string_view label, std::string_view run);
// Whether a server has the weights that the run gave it last.
Status CheckLabel(std::string_view label, std::string_view run, PolicyVersion given);

// Which version sampled each token of an answer.
struct TokenVersions {
  std::vector<PolicyVersion> versions = {};
  Status status = {};    // why they cannot be
  bool foreign = false;  // because the weights are of another run
};
// `oldest`: of the response's last token. `newest`: that the server has; of every token where the
// server does not say.
TokenVersions VersionsOf(const GenerateAnswer& answer, std::string_view run, PolicyVersion oldest,
                         PolicyVersion newest);
// The version of a response's last token; 0 of an empty one.
PolicyVersion NewestOf(const PartialResponse& response);

// The prefix score of a response that waits for one: the mean |score - recorded log-probability| of
// the first `max_scored` tokens that the policy sampled. Fewer scores than tokens: it goes on
// waiting.
void TakeScore(std::span<const float> scores, int64_t max_scored, PartialResponse& response);

// Independent random numbers for every response and for each time that it is sent.
uint64_t SeedOf(const GroupRequest& request, int64_t member, size_t num_tokens);

// The stop rule that a response has met, after an answer that ended like this; none where it has
// met none, or only its length.
std::optional<FinishReason> StopReasonOf(const StopRules& stop, std::span<const TokenRecord> tokens,
                                         AnswerEnd end);

}  // namespace pace

#endif  // PACE_ENGINES_ANSWER_CHECK_H_
