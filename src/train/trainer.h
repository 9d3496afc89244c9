// Trainer turns trajectories into updates of a network.
//
// A step: advantages over the whole batch; then, for each minibatch, gradients
// summed over packed micro-batches of at most token_budget tokens, one clipped
// AdamW update. Reduction weights come from the whole minibatch, so how it is
// packed, and how many threads share it, cannot change the objective. The loss is plain arithmetic
// on log-probs (loss/losses.h); only they are computed and differentiated in LibTorch.
//
//   Result<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(network), options);
//   Result<MetricList> metrics = (*trainer)->Step(version, sequences);
//   engine.Sync(version.Next(), (*trainer)->network().Weights());
//
// Thread-safety: none. LibTorch's exceptions become a Status here.
#ifndef PACE_TRAIN_TRAINER_H_
#define PACE_TRAIN_TRAINER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/status.h"
#include "core/version.h"
#include "model/training_network.h"
#include "train/adamw.h"
#include "train/correction/rollout_correction.h"
#include "train/metric.h"
#include "train/minibatch.h"
#include "train/option_reader.h"
#include "train/reduction.h"

namespace pace {

struct TrainerOptions {
  // By name, with settings of their own: advantage/advantages.h, loss/losses.h.
  std::string advantage = "grpo";
  NamedSettings advantage_settings = {};
  std::string loss = "ppo";
  NamedSettings loss_settings = {};
  // None: the one of the loss's paper.
  std::optional<ReductionMode> reduction = std::nullopt;
  double horizon = 0;  // of seq-mean-token-sum-norm
  // What the ratio is taken against; kProximal costs a forward pass more.
  RatioReference reference = RatioReference::kRollout;
  CorrectionOptions correction = {};
  double temperature = 1;    // that the rollouts were sampled at
  double entropy_bonus = 0;  // times the mean entropy, added to the objective

  int64_t num_minibatches = 1;  // updates per step
  int64_t token_budget = 4096;  // tokens of one forward pass
  // Threads that compute micro-batches side by side, each with gradients of its
  // own that are summed at the end. Each needs memory for gradients and for a
  // forward pass.
  int64_t num_threads = 1;

  AdamWOptions adamw = {};
  double learning_rate = 1e-6;
  int64_t warmup_updates = 0;  // over which the rate rises linearly from 0
  int64_t decay_updates = 0;   // it falls to 0 along a cosine until this update; 0 = never
  double max_grad_norm = 1;    // 0 = no clipping

  [[nodiscard]] Status Validate() const;
};

class Trainer {
 public:
  static Result<std::unique_ptr<Trainer>> Create(TrainingNetwork network,
                                                 const TrainerOptions& options);
  virtual ~Trainer() = default;

  // One step on groups that are complete. The metrics are train/* of
  // docs/run-directory.md. An update whose gradient is not finite is left out
  // and counted (train/skipped_updates).
  virtual Result<MetricList> Step(PolicyVersion version,
                                  std::span<const TrainSequence> sequences) = 0;
  // One update towards these responses, all policy tokens alike: supervised
  // training. Rewards and log-probs of the sequences are not read.
  virtual Result<MetricList> Imitate(std::span<const TrainSequence> sequences) = 0;
  // Mean log-prob per policy token, without an update.
  virtual Result<double> MeanLogProb(std::span<const TrainSequence> sequences) = 0;

  virtual const TrainingNetwork& network() const = 0;
  virtual AdamW& optimizer() = 0;
  virtual double learning_rate() const = 0;  // of the next update
};

}  // namespace pace

#endif  // PACE_TRAIN_TRAINER_H_
