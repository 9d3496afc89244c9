#include "bench/reprefill.h"

#include <cmath>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/clock.h"
#include "core/random.h"
#include "core/version.h"
#include "rollout/engine_core.h"

namespace pace {
namespace {

constexpr uint64_t kReprefillSeed = 20261115;

RolloutOptions EngineOptions(const ReprefillOptions& options) {
  RolloutOptions engine;
  engine.max_pass_tokens = options.pass_tokens;
  engine.score_moment = ScoreMoment::kEnd;
  return engine;
}

// A response of version 0 that a sync interrupted; its next token is the last.
GroupRequest Interrupted(int64_t group, int64_t num_tokens, int64_t vocab_size) {
  const CounterRandom random(kReprefillSeed, 2);
  const auto token = [&](int64_t index) {
    const double u = random.Uniform(static_cast<uint64_t>(group), static_cast<uint64_t>(index));
    return static_cast<TokenId>(u * static_cast<double>(vocab_size));
  };
  GroupRequest request;
  request.group = GroupId(group);
  request.prompt = PromptIndex(group);
  request.seed = kReprefillSeed;
  PartialResponse response{.awaits_score = true, .num_interrupts = 1};
  const auto logprob = static_cast<float>(-std::log(static_cast<double>(vocab_size)));
  for (int64_t i = 0; i < num_tokens; ++i) {
    if (i < kReprefillPrompt) {
      request.prompt_tokens.push_back(token(i));
    } else {
      response.tokens.push_back({.id = token(i),
                                 .version = PolicyVersion(0),
                                 .logprob = logprob,
                                 .sampled_logprob = logprob});
    }
  }
  request.stop.max_tokens = static_cast<int64_t>(response.tokens.size()) + 1;
  request.resumed.push_back(std::move(response));
  return request;
}

Result<ReprefillCost> RunOnce(EngineCore& engine, const ReprefillOptions& options) {
  const int64_t vocab_size = engine.decoder().config().vocab_size;
  for (int64_t group = 0; group < options.num_responses; ++group) {
    PACE_RETURN_IF_ERROR(engine.Submit(Interrupted(group, options.num_tokens, vocab_size)));
  }
  ReprefillCost cost;
  int64_t num_finished = 0;
  const Seconds scored_before = engine.decoder().scoring_time();
  const WallClock clock;
  while (engine.busy()) {
    PACE_ASSIGN_OR_RETURN(const StepReport step, engine.Step());
    cost.num_rows += step.num_prefill_rows + step.num_decode_rows;
    cost.num_scored += step.num_scored_rows;
    for (const FinishedResponse& done : step.finished) {
      PACE_CHECK(done.response.prefix_score.has_value(), "a response ended without a score");
      ++num_finished;
    }
  }
  cost.seconds = clock.Now().count();
  cost.scoring_seconds = (engine.decoder().scoring_time() - scored_before).count();
  PACE_CHECK(num_finished == options.num_responses, num_finished, " responses ended");
  return cost;
}

}  // namespace

int64_t ReprefillBlocks(const ReprefillOptions& options) {
  // A response leaves part of its last block unused and may get one more.
  return options.num_responses * (options.num_tokens / kBlockTokens + 3);
}

Result<std::vector<ReprefillCost>> MeasureReprefill(std::unique_ptr<Decoder> decoder,
                                                    std::shared_ptr<const DecoderWeights> weights,
                                                    const ReprefillOptions& options) {
  PACE_CHECK(options.num_tokens >= kReprefillPrompt + RolloutOptions{}.min_scored,
             options.num_tokens, " tokens");
  EngineCore engine(std::move(decoder), std::nullopt, EngineOptions(options));
  PACE_RETURN_IF_ERROR(engine.Sync(PolicyVersion(1), std::move(weights)));
  std::vector<ReprefillCost> costs;
  for (int64_t round = 0; round <= options.repetitions; ++round) {
    PACE_ASSIGN_OR_RETURN(const ReprefillCost cost, RunOnce(engine, options));
    if (round > 0) costs.push_back(cost);
  }
  return costs;
}

}  // namespace pace
