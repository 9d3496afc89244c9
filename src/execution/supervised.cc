#include "execution/supervised.h"

#include <string>
#include <utility>

#include "core/parallel.h"
#include "execution/learner_options.h"
#include "execution/prompt_source.h"
#include "task/sft_line.h"
#include "task/splits.h"
#include "task/task.h"

namespace pace {
namespace {

TrainSequence ToSequence(SftTokens tokens) {
  TrainSequence sequence;
  sequence.tokens = std::move(tokens.ids);
  sequence.num_prompt_tokens = tokens.num_prompt_tokens;
  const size_t length = sequence.num_response_tokens();
  sequence.mask.assign(length, 1);
  for (size_t i = 0; i < tokens.is_tool.size(); ++i) sequence.mask[i] = tokens.is_tool[i] ? 0 : 1;
  sequence.rollout_logprobs.assign(length, 0);
  sequence.versions.assign(length, 0);
  return sequence;
}

// An example of several turns, acted out: each turn but the last calls the tool.
Result<SftTokens> ActOut(const PromptRenderer& renderer, const SftExample& example, TokenId end,
                         const TurnRules& turns, ToolExecutor& executor) {
  PACE_ASSIGN_OR_RETURN(std::vector<TokenId> ids, renderer.Encode(example.prompt));
  PartialResponse said;
  for (size_t i = 0; i < example.turns.size(); ++i) {
    PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> turn,
                          renderer.tokenizer().Encode(example.turns[i]));
    for (const TokenId id : turn) said.tokens.push_back({.id = id});
    said.tokens.push_back({.id = end});
    if (i + 1 == example.turns.size()) break;
    const std::optional<ToolCall> call = turns.CallOf(said);
    if (!call.has_value()) return InvalidArgument("turn ", i, " of an example calls no tool");
    PACE_ASSIGN_OR_RETURN(const ToolReply reply, executor.Answer(*call));
    PACE_ASSIGN_OR_RETURN(const auto given, turns.ReplyOf(said, reply.text));
    if (!given.has_value()) break;  // no room: a rollout would end here, too
    for (const TokenId id : *given) said.tokens.push_back({.id = id, .is_tool = true});
  }
  SftTokens tokens{.ids = std::move(ids)};
  tokens.num_prompt_tokens = static_cast<int64_t>(tokens.ids.size());
  for (const TokenRecord& token : said.tokens) {
    tokens.ids.push_back(token.id);
    tokens.is_tool.push_back(token.is_tool);
  }
  return tokens;
}

// A batch of examples; those that call a tool wait for it side by side.
std::vector<Result<SftTokens>> NextExamples(const Settings& settings, const ExampleSource& examples,
                                            int64_t& next) {
  const auto count = static_cast<size_t>(settings.sft.batch_size);
  std::vector<Result<SftTokens>> batch(count, SftTokens{});
  const bool tools = settings.tools.kind() != ToolUse::kNone;
  ForEachInParallel(count, tools ? settings.tools.max_programs : 1,
                    [&](size_t i) { batch[i] = examples(next + static_cast<int64_t>(i)); });
  next += settings.sft.batch_size;
  return batch;
}

}  // namespace

Result<ExampleSource> SupervisedExamples(const Settings& settings, const Policy& policy,
                                         std::shared_ptr<ToolExecutor> executor) {
  PACE_ASSIGN_OR_RETURN(PromptRenderer made, MakeRenderer(settings, policy, executor.get()));
  PACE_ASSIGN_OR_RETURN(std::optional<TurnRules> rules, MakeTurnRules(settings, policy, made));
  if (policy.config.eos.empty()) return InvalidArgument("the model names no end-of-text token");
  const TokenId end = policy.config.eos.front();
  const auto renderer = std::make_shared<const PromptRenderer>(std::move(made));
  const auto seed = static_cast<uint64_t>(settings.run.seed);
  if (settings.task.kind != TaskKind::kDataset) {
    const Result<SftSource> source = MakeSftSource(settings.task, seed);
    if (!source.ok()) return source.status();
    const auto turns = std::make_shared<const std::optional<TurnRules>>(std::move(rules));
    return ExampleSource([renderer, end, turns, executor, source = *source,
                          use = settings.tools.use,
                          calls_tool = settings.tools.kind() == ToolUse::kCodeInterpreter](
                             int64_t index) -> Result<SftTokens> {
      const SftExample example = source.At(index);
      if (example.turns.size() == 1) return EncodeSft(*renderer, example, end);
      if (!calls_tool) {
        return InvalidArgument("tools.use = ", use,
                               ": examples of this task call a tool "
                               "(tools.use=code_interpreter)");
      }
      return ActOut(*renderer, example, end, **turns, *executor);
    });
  }
  PACE_ASSIGN_OR_RETURN(std::vector<SftExample> examples, ReadSftExamples(settings.task));
  const auto held = std::make_shared<const std::vector<SftExample>>(std::move(examples));
  return ExampleSource([renderer, end, seed, held](int64_t index) {
    const auto size = static_cast<int64_t>(held->size());
    const int64_t row = ShuffledPosition(seed, index / size, index % size, size);
    return EncodeSft(*renderer, (*held)[static_cast<size_t>(row)], end);
  });
}

Result<std::unique_ptr<Trainer>> RunSupervised(
    const Settings& settings, const Policy& policy, const ExampleSource& examples,
    const std::function<bool(const SupervisedStep&)>& progress) {
  PACE_ASSIGN_OR_RETURN(TrainerOptions options, TrainerOptionsOf(settings));
  options.decay_updates = settings.sft.cosine_decay ? settings.sft.num_steps : 0;
  options.kl = {};  // examples are there to be followed
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer,
                        Trainer::Create(policy.config, policy.weights, options));
  int64_t next = 0;
  for (int64_t step = 0; step < settings.sft.num_steps; ++step) {
    std::vector<TrainSequence> batch;
    SupervisedStep line{.step = step, .learning_rate = trainer->learning_rate()};
    for (Result<SftTokens>& tokens : NextExamples(settings, examples, next)) {
      if (!tokens.ok()) return tokens.status();
      batch.push_back(ToSequence(std::move(tokens).value()));
      line.num_tokens += static_cast<int64_t>(batch.back().tokens.size());
    }
    PACE_ASSIGN_OR_RETURN(const MetricList metrics, trainer->Imitate(batch));
    if (const Metric* loss = FindMetric(metrics, "train/loss")) line.loss = loss->value;
    if (const Metric* norm = FindMetric(metrics, "train/grad_norm")) line.grad_norm = norm->value;
    if (progress && !progress(line)) break;
  }
  return trainer;
}

}  // namespace pace
