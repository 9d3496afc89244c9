#include "bench/rollout_loop.h"

#include <set>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/clock.h"

namespace pace {
namespace {

// Prefill and rebuild in large passes: nothing else waits here.
constexpr int64_t kPassTokens = 2048;

}  // namespace

RolloutLoop::RolloutLoop(std::unique_ptr<Decoder> decoder, const RolloutOptions& options)
    : engine_(std::move(decoder), std::nullopt, options) {}

Result<std::unique_ptr<RolloutLoop>> RolloutLoop::Create(const ModelConfig& config,
                                                         const WeightSet& weights,
                                                         const RolloutLoopOptions& options) {
  DecoderOptions decoder_options;
  decoder_options.dtype = options.dtype;
  decoder_options.num_threads = options.num_threads;
  // Ample: a sequence leaves part of its last block unused.
  decoder_options.num_blocks = 2 * options.max_tokens / kBlockTokens + 64;
  Result<std::unique_ptr<Decoder>> decoder = CreateCpuDecoder(config, decoder_options);
  if (!decoder.ok()) return decoder.status();
  Result<std::shared_ptr<const DecoderWeights>> prepared = (*decoder)->Prepare(weights);
  if (!prepared.ok()) return prepared.status();
  RolloutOptions engine_options;
  engine_options.score_prefixes = options.score_prefixes;
  engine_options.max_pass_tokens = kPassTokens;
  auto loop =
      std::unique_ptr<RolloutLoop>(new RolloutLoop(std::move(decoder).value(), engine_options));
  loop->weights_ = *prepared;
  PACE_RETURN_IF_ERROR(loop->engine_.Sync(loop->version_, loop->weights_));
  return loop;
}

Status RolloutLoop::Submit(const TokenRows& prompts, int64_t max_tokens) {
  for (const std::vector<TokenId>& prompt : prompts) {
    GroupRequest request;
    request.group = GroupId(next_group_++);
    request.prompt_tokens = prompt;
    request.sampling.temperature = 0;
    request.stop.max_tokens = max_tokens;
    PACE_RETURN_IF_ERROR(engine_.Submit(std::move(request)));
  }
  return Status::Ok();
}

Result<Generation> RolloutLoop::Generate(const TokenRows& prompts, int64_t new_tokens) {
  const int64_t first = next_group_;
  Generation generation{.seconds = 0, .ids = TokenRows(prompts.size())};
  const WallClock clock;
  PACE_RETURN_IF_ERROR(Submit(prompts, new_tokens));
  while (engine_.busy()) {
    Result<StepReport> step = engine_.Step();
    if (!step.ok()) return step.status();
    for (const FinishedResponse& done : step->finished) {
      std::vector<TokenId>& ids =
          generation.ids[static_cast<size_t>(done.id.group.value() - first)];
      for (const TokenRecord& token : done.response.tokens) ids.push_back(token.id);
    }
  }
  generation.seconds = clock.Now().count();
  return generation;
}

Result<SyncCost> RolloutLoop::Sync(const TokenRows& prompts, int64_t new_tokens) {
  const int64_t first = next_group_;
  // Room for one token after the sync, and no response may end before it.
  PACE_RETURN_IF_ERROR(Submit(prompts, new_tokens + 2));
  const auto generated = [&](int64_t group) {
    const PartialResponse* response = engine_.Peek({GroupId(first + group), 0});
    PACE_CHECK(response != nullptr, "a response ended before the sync");
    return static_cast<int64_t>(response->tokens.size());
  };
  const auto num_prompts = static_cast<int64_t>(prompts.size());
  for (int64_t group = 0; group < num_prompts;) {
    if (generated(group) >= new_tokens) {
      ++group;
      continue;
    }
    const Result<StepReport> step = engine_.Step();
    if (!step.ok()) return step.status();
  }
  SyncCost cost;
  std::set<MemberId> waiting;
  for (int64_t group = 0; group < num_prompts; ++group) waiting.insert({GroupId(first + group), 0});
  version_ = version_.Next();
  const WallClock clock;
  PACE_RETURN_IF_ERROR(engine_.Sync(version_, weights_));
  while (!waiting.empty()) {
    const Result<StepReport> step = engine_.Step();
    if (!step.ok()) return step.status();
    for (const MemberId& id : step->sampled) waiting.erase(id);
    cost.num_rebuilt_rows += step->num_rebuilt_rows;
    cost.num_scored_rows += step->num_scored_rows;
  }
  cost.seconds = clock.Now().count();
  for (int64_t group = 0; group < num_prompts; ++group) {
    (void)engine_.Cancel(GroupId(first + group));
  }
  return cost;
}

}  // namespace pace
