#include "execution/curriculum.h"

#include <utility>

#include "execution/learner_options.h"
#include "reward/overlong.h"
#include "reward/verifier.h"
#include "task/task.h"

namespace pace {

Result<Curriculum> Curriculum::Create(const Settings& settings, const Policy& policy) {
  Result<PromptRenderer> renderer =
      PromptRenderer::Create(policy.tokenizer, policy.chat_template, settings.prompt);
  if (!renderer.ok()) return renderer.status();
  Result<TrainingProblems> problems =
      MakeTrainingProblems(settings.task, *renderer, static_cast<uint64_t>(settings.run.seed));
  if (!problems.ok()) return problems.status();
  if (policy.config.eos.empty()) {
    return InvalidArgument("policy.model = ", settings.policy.model,
                           ": names no end-of-text token (eos_token_id in config.json or "
                           "generation_config.json)");
  }
  return Curriculum(settings, std::move(renderer).value(), problems->source, policy.config.eos);
}

Result<GroupRequest> Curriculum::RequestFor(GroupId group, PromptIndex prompt) const {
  Result<std::vector<TokenId>> tokens = renderer_.Render(source_->At(prompt));
  if (!tokens.ok()) return tokens.status();
  GroupRequest request;
  request.group = group;
  request.prompt = prompt;
  request.seed = static_cast<uint64_t>(settings_.run.seed);
  request.prompt_tokens = std::move(tokens).value();
  request.num_responses = settings_.NumMembers();
  if (settings_.train.WantsGreedyResponse()) request.greedy_member = request.num_responses - 1;
  request.sampling = TrainingSampling(settings_);
  request.stop.max_tokens = settings_.generation.max_tokens;
  request.stop.stop_tokens = stop_tokens_;
  return request;
}

std::string Curriculum::TextOf(const PartialResponse& response) const {
  std::vector<TokenId> ids;
  for (const TokenRecord& token : response.tokens) ids.push_back(token.id);
  return renderer_.tokenizer().Decode(ids, /*skip_special=*/true);
}

Judgement Curriculum::Judge(PromptIndex prompt, const PartialResponse& response) const {
  const Problem problem = source_->At(prompt);
  const Verification seen = Verify(problem.verifier, TextOf(response), problem.answer);
  Judgement judged{.correct = seen.correct, .reward = seen.score};
  if (settings_.train.overlong_buffer > 0) {
    judged.reward += OverlongPenalty(static_cast<int64_t>(response.tokens.size()),
                                     {.max_length = settings_.generation.max_tokens,
                                      .buffer_length = settings_.train.overlong_buffer,
                                      .factor = settings_.train.overlong_penalty});
  }
  return judged;
}

}  // namespace pace
