// What the rollout benchmark times: whole generations, and syncs in the middle
// of them.
#ifndef PACE_BENCH_ROLLOUT_LOOP_H_
#define PACE_BENCH_ROLLOUT_LOOP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/transformers_peer.h"
#include "core/status.h"
#include "model/decoder.h"
#include "model/model_config.h"
#include "model/weight_set.h"
#include "rollout/engine_core.h"

namespace pace {

struct RolloutLoopOptions {
  Dtype dtype = Dtype::kF32;
  int64_t num_threads = 1;
  int64_t max_tokens = 0;  // of all sequences together that it must hold
  bool score_prefixes = false;
};

// What a sync cost, from the swap until every response had sampled again.
struct SyncCost {
  double seconds = 0;
  int64_t num_reprefill_rows = 0;
  int64_t num_scored_rows = 0;
};

class RolloutLoop {
 public:
  static Result<std::unique_ptr<RolloutLoop>> Create(const ModelConfig& config,
                                                     const WeightSet& weights,
                                                     const RolloutLoopOptions& options);

  // Greedy continuations, timed from the first request to the last token.
  Result<Generation> Generate(const TokenRows& prompts, int64_t new_tokens);
  // Generates until every response has `new_tokens` and room for `num_syncs` more.
  Status Hold(const TokenRows& prompts, int64_t new_tokens, int64_t num_syncs);
  // Syncs under the responses held; each generates one token.
  Result<SyncCost> Sync();
  void Drop();

 private:
  RolloutLoop(std::unique_ptr<Decoder> decoder, const RolloutOptions& options);
  Status Submit(const TokenRows& prompts, int64_t max_tokens);

  EngineCore engine_;
  std::shared_ptr<const DecoderWeights> weights_;
  PolicyVersion version_;
  int64_t next_group_ = 0;
  std::vector<MemberId> held_;
};

}  // namespace pace

#endif  // PACE_BENCH_ROLLOUT_LOOP_H_
