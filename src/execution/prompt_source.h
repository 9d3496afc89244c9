// PromptSource: the problems of a run as requests for responses, and the reward of
// what comes back.
//
//   Result<PromptSource> prompt_source = PromptSource::Create(settings, policy);
//   Result<GroupRequest> request = prompt_source->RequestFor(group, prompt);
//   Judgement judged = prompt_source->Judge(prompt, response);
//
// A request is a function of the prompt's index and attempt alone, and a judgement of the
// problem and the tokens: both can be made again at any time.
// Thread-safety: immutable.
#ifndef PACE_EXECUTION_PROMPT_SOURCE_H_
#define PACE_EXECUTION_PROMPT_SOURCE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/ids.h"
#include "core/status.h"
#include "execution/policy.h"
#include "execution/turns.h"
#include "judge/reward_request.h"
#include "rollout/request.h"
#include "task/problem_source.h"
#include "task/prompt_renderer.h"

namespace pace {

// Prompts of a policy as the settings want them, with the schemas of the tools that responses
// may use; those of an environment are known to the executor alone (null: none is shown).
Result<PromptRenderer> MakeRenderer(const Settings& settings, const Policy& policy,
                                    const ToolExecutor* executor = nullptr);
// None where tools.use is none.
Result<std::optional<TurnRules>> MakeTurnRules(const Settings& settings, const Policy& policy,
                                               const PromptRenderer& renderer);
// What a problem's verifier says of a response: of the policy's last turn, which
// without tools is all of it.
Verification VerifyResponse(const Problem& problem, const PartialResponse& response,
                            const Tokenizer& tokenizer);

// What a reward function of the user's is asked about a response.
RewardRequest RewardRequestOf(const Problem& problem, const PartialResponse& response,
                              const Tokenizer& tokenizer);

// What an environment is told of a problem.
RewardRequest EnvironmentProblemOf(const Problem& problem);

struct Judgement {
  bool correct = false;
  double reward = 0;
  std::string detail = {};  // a JSON object that is recorded, or empty
};

class PromptSource {
 public:
  static Result<PromptSource> Create(const Settings& settings, const Policy& policy,
                                     const ToolExecutor* executor = nullptr);

  // `attempt`: 1 for the first dispatch of the prompt, 2 for the first retry. Each has
  // random numbers of its own; a retry that repeated the first would teach nothing new.
  Result<GroupRequest> RequestFor(GroupId group, PromptIndex prompt, int64_t attempt = 1) const;
  // Of a response by the problem's verifier. REQUIRES: it is not kOwn
  Judgement Judge(PromptIndex prompt, const PartialResponse& response) const;
  // By what its environment said. REQUIRES: it gave a reward
  Judgement Judge(const EnvironmentRecord& record, const PartialResponse& response) const;
  // Of a response by what a reward function said. REQUIRES: reply.ok()
  Judgement Judge(const RewardReply& reply, const PartialResponse& response) const;

  // Epochs of the data up to and including this prompt: 1 = each problem came once.
  // None where problems are generated.
  std::optional<double> EpochOf(PromptIndex prompt) const;

  // The same for a problem that is not of the training stream.
  Result<std::vector<TokenId>> Render(const Problem& problem) const {
    return renderer_.Render(problem);
  }

  // Its verifier is kOwn where task.verifier names a function.
  Problem ProblemAt(PromptIndex prompt) const;
  const Tokenizer& tokenizer() const { return renderer_.tokenizer(); }

  // How responses take turns with the tool; null where they have none.
  const TurnRules* turns() const { return turns_.has_value() ? &*turns_ : nullptr; }

 private:
  PromptSource(const Settings& settings, PromptRenderer renderer,
               std::shared_ptr<const ProblemSource> source, std::vector<TokenId> stop_tokens,
               std::optional<TurnRules> turns, bool own_reward)
      : settings_(settings),
        renderer_(std::move(renderer)),
        source_(std::move(source)),
        stop_tokens_(std::move(stop_tokens)),
        turns_(std::move(turns)),
        own_reward_(own_reward) {}

  Judgement Punished(Judgement judged, const PartialResponse& response) const;
  // Of the members of its group, where generation.mean_tokens prescribes them.
  std::vector<int64_t> LengthsOf(PromptIndex prompt, uint64_t seed) const;

  Settings settings_;
  PromptRenderer renderer_;
  std::shared_ptr<const ProblemSource> source_;
  std::vector<TokenId> stop_tokens_;
  std::optional<TurnRules> turns_;
  bool own_reward_ = false;
};

}  // namespace pace

#endif  // PACE_EXECUTION_PROMPT_SOURCE_H_
