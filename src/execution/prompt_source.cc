#include "execution/prompt_source.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/json_writer.h"
#include "core/random.h"
#include "execution/learner_options.h"
#include "reward/verifier.h"
#include "rollout/turn_count.h"
#include "task/code_interpreter.h"
#include "task/task.h"

namespace pace {
namespace {

constexpr uint32_t kLengthStream = 0x5901;
constexpr uint32_t kAttemptStream = 0x5902;

// The run's own seed for the first attempt.
uint64_t SeedOf(uint64_t seed, int64_t attempt) {
  if (attempt <= 1) return seed;
  return CounterRandom(seed, kAttemptStream).Bits(static_cast<uint64_t>(attempt), 0);
}

// A text, or a list of messages.
std::string PromptJson(const Prompt& prompt) {
  std::string out;
  JsonWriter json(out);
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    json.Value(*text);
    return out;
  }
  json.BeginArray();
  for (const ChatMessage& message : std::get<std::vector<ChatMessage>>(prompt)) {
    json.BeginObject();
    json.Put("role", message.role);
    json.Put("content", message.content);
    json.EndObject();
  }
  json.EndArray();
  return out;
}

}  // namespace

Result<PromptRenderer> MakeRenderer(const Settings& settings, const Policy& policy,
                                    const ToolExecutor* executor) {
  std::optional<Value> tools;
  if (settings.tools.kind() == ToolUse::kCodeInterpreter) {
    tools = CodeInterpreterTools();
  } else if (executor != nullptr) {
    PACE_ASSIGN_OR_RETURN(tools, executor->Schemas());
  }
  return PromptRenderer::Create(policy.tokenizer, policy.chat_template, settings.prompt,
                                std::move(tools));
}

Result<std::optional<TurnRules>> MakeTurnRules(const Settings& settings, const Policy& policy,
                                               const PromptRenderer& renderer) {
  if (settings.tools.kind() == ToolUse::kNone) return std::optional<TurnRules>();
  if (policy.config.eos.empty()) return InvalidArgument("the model names no end-of-text token");
  if (!renderer.has_template()) {
    return InvalidArgument(
        "tools.use = ", settings.tools.use, ": needs a chat template, and ",
        settings.prompt.chat == ChatUse::kNever ? "prompt.chat is never" : "the model has none");
  }
  TurnRules rules(settings.tools, renderer, policy.config.eos.front(),
                  settings.generation.max_tokens);
  PACE_RETURN_IF_ERROR(rules.Check());
  return std::optional(std::move(rules));
}

Verification VerifyResponse(const Problem& problem, const PartialResponse& response,
                            const Tokenizer& tokenizer) {
  const std::string text = tokenizer.Decode(LastTurn(response), /*skip_special=*/true);
  return Verify(problem.verifier, text, problem.answer, CountTurns(response).total());
}

RewardRequest RewardRequestOf(const Problem& problem, const PartialResponse& response,
                              const Tokenizer& tokenizer) {
  const TurnCount turns = CountTurns(response);
  RewardRequest request{.id = problem.id,
                        .response = tokenizer.Decode(LastTurn(response), /*skip_special=*/true),
                        .answer = problem.answer,
                        .prompt = PromptJson(problem.prompt),
                        .data_source = problem.data_source,
                        .ability = problem.ability,
                        .extra_info = problem.extra_info,
                        .num_turns = turns.total(),
                        .num_tool_calls = turns.tool};
  request.tokens.reserve(response.tokens.size());
  for (const auto& token : response.tokens) request.tokens.push_back(token.id);
  return request;
}

RewardRequest EnvironmentProblemOf(const Problem& problem) {
  return {.id = problem.id,
          .answer = problem.answer,
          .prompt = PromptJson(problem.prompt),
          .data_source = problem.data_source,
          .ability = problem.ability,
          .extra_info = problem.extra_info};
}

Result<PromptSource> PromptSource::Create(const Settings& settings, const Policy& policy,
                                          const ToolExecutor* executor) {
  PACE_ASSIGN_OR_RETURN(PromptRenderer renderer, MakeRenderer(settings, policy, executor));
  PACE_ASSIGN_OR_RETURN(
      TrainingProblems problems,
      MakeTrainingProblems(settings.task, renderer, static_cast<uint64_t>(settings.run.seed)));
  if (policy.config.eos.empty()) {
    return InvalidArgument("policy.model = ", settings.policy.model,
                           ": names no end-of-text token (eos_token_id in config.json or "
                           "generation_config.json)");
  }
  PACE_ASSIGN_OR_RETURN(std::optional<TurnRules> turns, MakeTurnRules(settings, policy, renderer));
  PACE_ASSIGN_OR_RETURN(const auto own, OwnRewardOf(settings.task.verifier));
  return PromptSource(settings, std::move(renderer), problems.source, policy.config.eos,
                      std::move(turns), own.has_value());
}

Result<GroupRequest> PromptSource::RequestFor(GroupId group, PromptIndex prompt,
                                              int64_t attempt) const {
  PACE_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, renderer_.Render(source_->At(prompt)));
  GroupRequest request;
  request.group = group;
  request.prompt = prompt;
  request.seed = SeedOf(static_cast<uint64_t>(settings_.run.seed), attempt);
  request.prompt_tokens = std::move(tokens);
  request.num_responses = settings_.NumMembers();
  if (settings_.train.WantsGreedyResponse()) request.greedy_member = request.num_responses - 1;
  request.sampling = TrainingSampling(settings_);
  request.stop.max_tokens = settings_.generation.max_tokens;
  request.stop.stop_tokens = stop_tokens_;
  request.stop.pauses = turns_.has_value();
  if (settings_.generation.mean_tokens > 0) request.stop.lengths = LengthsOf(prompt, request.seed);
  return request;
}

std::optional<double> PromptSource::EpochOf(PromptIndex prompt) const {
  const std::optional<int64_t> size = source_->epoch_size();
  if (!size.has_value()) return std::nullopt;
  return static_cast<double>(prompt.value() + 1) / static_cast<double>(*size);
}

std::vector<int64_t> PromptSource::LengthsOf(PromptIndex prompt, uint64_t seed) const {
  const CounterRandom random(seed, kLengthStream);
  const auto most = static_cast<double>(settings_.generation.max_tokens);
  std::vector<int64_t> lengths;
  for (int64_t member = 0; member < settings_.NumMembers(); ++member) {
    const double drawn =
        settings_.generation.mean_tokens *
        random.Exponential(static_cast<uint64_t>(prompt.value()), static_cast<uint64_t>(member));
    lengths.push_back(static_cast<int64_t>(std::clamp(std::ceil(drawn), 1.0, most)));
  }
  return lengths;
}

Problem PromptSource::ProblemAt(PromptIndex prompt) const {
  Problem problem = source_->At(prompt);
  if (own_reward_) problem.verifier = VerifierMode::kOwn;
  return problem;
}

Judgement PromptSource::Judge(PromptIndex prompt, const PartialResponse& response) const {
  const Problem problem = source_->At(prompt);
  const Verification seen = VerifyResponse(problem, response, renderer_.tokenizer());
  return Punished({.correct = seen.correct, .reward = seen.score}, response);
}

Judgement PromptSource::Judge(const RewardReply& reply, const PartialResponse& response) const {
  return Punished({.correct = reply.correct, .reward = reply.score, .detail = reply.detail},
                  response);
}

Judgement PromptSource::Judge(const EnvironmentRecord& record,
                              const PartialResponse& response) const {
  return Punished(
      {.correct = record.is_correct(), .reward = *record.reward, .detail = record.detail},
      response);
}

Judgement PromptSource::Punished(Judgement judged, const PartialResponse& response) const {
  if (settings_.train.overlong_buffer > 0) {
    judged.reward += OverlongPenalty(static_cast<int64_t>(response.tokens.size()),
                                     {.max_length = settings_.generation.max_tokens,
                                      .buffer_length = settings_.train.overlong_buffer,
                                      .factor = settings_.train.overlong_penalty});
  }
  return judged;
}

}  // namespace pace
