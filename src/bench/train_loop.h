// What the trainer benchmark times on our side: steps of a Trainer, on groups of responses
// as reinforcement learning produces them, most of them short and a few very long.
#ifndef PACE_BENCH_TRAIN_LOOP_H_
#define PACE_BENCH_TRAIN_LOOP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "formats/dtype.h"
#include "model/model_config.h"
#include "model/weight_set.h"
#include "train/minibatch.h"
#include "train/trainer.h"

namespace pace {

struct TrainBatchOptions {
  int64_t num_groups = 4;
  int64_t group_size = 8;
  // Prompts are uniform in length, responses log-normal and cut off.
  int64_t min_prompt_tokens = 24;
  int64_t max_prompt_tokens = 64;
  double median_response_tokens = 120;
  double log_deviation = 0.8;
  int64_t max_response_tokens = 768;
};

// Random tokens and rewards, the same in every run. Every group has two
// different rewards at least; rollout log-probs are 0.
std::vector<TrainSequence> MakeTrainBatch(const ModelConfig& config,
                                          const TrainBatchOptions& options);

// Tokens of prompts and responses.
int64_t CountTokens(const std::vector<TrainSequence>& sequences);

struct TrainStep {
  double seconds = 0;
  double loss = 0;
  double grad_norm = 0;                              // before clipping
  std::optional<int64_t> peak_bytes = std::nullopt;  // where it was measured
};

// GRPO with PPO's loss, token-mean: one update per step. `token_budget` is for
// all threads together.
TrainerOptions BenchTrainerOptions(int64_t num_threads, int64_t token_budget);

// What a peer is to load, as train_peer.py says.
std::string TrainLoadRequest(const std::string& folder, const std::vector<TrainSequence>& sequences,
                             const TrainerOptions& options, int64_t token_budget);

class TrainLoop {
 public:
  // Computes in F32 or BF16; master weights are F32.
  static Result<std::unique_ptr<TrainLoop>> Create(const ModelConfig& config,
                                                   const WeightSet& weights, Dtype dtype,
                                                   const TrainerOptions& options,
                                                   Communicator* ranks = nullptr);

  Result<TrainStep> Step(const std::vector<TrainSequence>& sequences, bool measure_memory);

 private:
  explicit TrainLoop(std::unique_ptr<Trainer> trainer) : trainer_(std::move(trainer)) {}

  std::unique_ptr<Trainer> trainer_;
};

// Fills in the log-probs of these weights with a little noise: what a policy a few steps
// older would have recorded.
Status RecordLogProbs(const ModelConfig& config, const WeightSet& weights,
                      std::vector<TrainSequence>& sequences);

// The machine's limit for matrix products, as LibTorch reaches it.
double GemmGigaflops(Dtype dtype, int64_t num_threads);

}  // namespace pace

#endif  // PACE_BENCH_TRAIN_LOOP_H_
