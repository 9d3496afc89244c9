#include "bench/rollout_loop.h"

#include <set>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/clock.h"
#include "model/cpu/cpu_decoder.h"

namespace pace {
namespace {

// Prefill and rebuild in large passes: nothing else waits here.
constexpr int64_t kPassTokens = 2048;
// What a response may generate while all others are rebuilt.
constexpr int64_t kTokensPerSync = 16;

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
  decoder_options.num_blocks = 2 * options.max_tokens / kBlockTokens + 256;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Decoder> decoder,
                        CreateCpuDecoder(config, decoder_options));
  PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> prepared, decoder->Prepare(weights));
  RolloutOptions engine_options;
  engine_options.score_prefixes = options.score_prefixes;
  engine_options.max_pass_tokens = kPassTokens;
  auto loop = std::unique_ptr<RolloutLoop>(new RolloutLoop(std::move(decoder), engine_options));
  loop->weights_ = prepared;
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
    PACE_ASSIGN_OR_RETURN(StepReport step, engine_.Step());
    for (const FinishedResponse& done : step.finished) {
      std::vector<TokenId>& ids =
          generation.ids[static_cast<size_t>(done.id.group.value() - first)];
      for (const TokenRecord& token : done.response.tokens) ids.push_back(token.id);
    }
  }
  generation.seconds = clock.Now().count();
  return generation;
}

Status RolloutLoop::Hold(const TokenRows& prompts, int64_t new_tokens, int64_t num_syncs) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    held_.push_back({GroupId(next_group_ + static_cast<int64_t>(i)), 0});
  }
  // While the last one catches up the others go on, a token each pass; none may
  // end before the last sync.
  PACE_RETURN_IF_ERROR(Submit(prompts, new_tokens + num_syncs * kTokensPerSync));
  for (size_t i = 0; i < held_.size();) {
    const PartialResponse* response = engine_.Peek(held_[i]);
    PACE_CHECK(response != nullptr, "a response ended before the sync");
    if (static_cast<int64_t>(response->tokens.size()) >= new_tokens) {
      ++i;
      continue;
    }
    PACE_RETURN_IF_ERROR(engine_.Step().status());
  }
  return Status::Ok();
}

Result<SyncCost> RolloutLoop::Sync() {
  SyncCost cost;
  std::set<MemberId> waiting(held_.begin(), held_.end());
  version_ = version_.Next();
  const WallClock clock;
  PACE_RETURN_IF_ERROR(engine_.Sync(version_, weights_));
  while (!waiting.empty()) {
    PACE_CHECK(engine_.busy(), "a response ended before the sync");
    PACE_ASSIGN_OR_RETURN(const StepReport step, engine_.Step());
    for (const MemberId& id : step.sampled) waiting.erase(id);
    cost.num_reprefill_rows += step.num_reprefill_rows;
    cost.num_scored_rows += step.num_scored_rows;
  }
  cost.seconds = clock.Now().count();
  return cost;
}

void RolloutLoop::Drop() {
  for (const MemberId& id : held_) (void)engine_.Cancel(id.group);
  held_.clear();
}

}  // namespace pace
