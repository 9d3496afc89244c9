// The batch of the trainer benchmark: groups of responses as reinforcement
// learning makes them, most of them short and a few very long.
#ifndef PACE_BENCH_TRAIN_BATCH_H_
#define PACE_BENCH_TRAIN_BATCH_H_

#include <cstdint>
#include <vector>

#include "model/model_config.h"
#include "train/minibatch.h"

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

}  // namespace pace

#endif  // PACE_BENCH_TRAIN_BATCH_H_
