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
#include "model/torch/training_network.h"
#include "train/adamw.h"
#include "train/metric.h"
#include "train/minibatch.h"
#include "train/trainer_options.h"

namespace pace {

// What a trainer knows besides the network's parameters.
struct TrainerState {
  // Moments of the parameters as NAME.m and NAME.v; value_head.weight and .bias
  // with theirs, where there is a head.
  NamedTensors tensors = {};
  int64_t num_updates = 0;
  double kl_coefficient = 0;  // of the penalty in the reward, for the next step
};

class Trainer {
 public:
  // `initial` is the policy that KL penalties measure the distance from; it stays
  // as it is, and is needed where options.kl is active.
  static Result<std::unique_ptr<Trainer>> Create(
      TrainingNetwork network, const TrainerOptions& options,
      std::optional<TrainingNetwork> initial = std::nullopt);
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
  virtual double learning_rate() const = 0;  // of the next update, before VCPO's scale

  // Shares the tensors: copy them before the next step.
  virtual TrainerState State() const = 0;
  // Copies a state back; every tensor must be there in its shape.
  virtual Status Restore(const TrainerState& state) = 0;
};

}  // namespace pace

#endif  // PACE_TRAIN_TRAINER_H_
