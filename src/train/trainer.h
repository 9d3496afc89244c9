// Trainer turns trajectories into updates of a network.
//
// A step: advantages over the whole batch; then, for each minibatch, gradients
// summed over packed micro-batches of at most token_budget tokens, one clipped
// AdamW update. Reduction weights come from the whole minibatch, so how it is
// packed, and how many threads share it, cannot change the objective. The loss is
// plain arithmetic on log-probs (loss/losses.h); LibTorch computes and differentiates
// them, behind this header (torch_trainer.h).
//
//   Result<std::unique_ptr<Trainer>> trainer = Trainer::Create(config, weights, options);
//   Result<MetricList> metrics = (*trainer)->Step(sequences);
//   Result<WeightSet> published = (*trainer)->Snapshot();
//
// Several ranks (ranks/communicator.h) share the sequences of each minibatch; the update is that of
// the whole minibatch. Rank 0 leads: its calls are carried out by all.
//
// Thread-safety: none; one thread at a time, which may change. LibTorch's exceptions
// become a Status here.
#ifndef PACE_TRAIN_TRAINER_H_
#define PACE_TRAIN_TRAINER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/status.h"
#include "formats/tensor_view.h"
#include "model/model_config.h"
#include "model/weight_set.h"
#include "train/math/metric.h"
#include "train/minibatch.h"
#include "train/trainer_options.h"

namespace pace {

class Communicator;

// A copy of what a trainer knows, on the host, to be written while training goes on.
struct TrainerState {
  WeightSet weights = {};
  // Float32: moments of the parameters as NAME.m and NAME.v; value_head.weight and .bias
  // with theirs, where there is a head.
  TensorViews tensors = {};
  std::shared_ptr<const void> memory = {};  // of the tensors
  int64_t num_updates = 0;
  double kl_coefficient = 0;  // of the penalty in the reward, for the next step
};

class Trainer {
 public:
  // Starts from these weights, from which KL penalties measure the distance. With `ranks`, which
  // outlive it, this is rank 0's, and the others are in FollowTrainer.
  static Result<std::unique_ptr<Trainer>> Create(const ModelConfig& config,
                                                 const WeightSet& weights,
                                                 const TrainerOptions& options,
                                                 Communicator* ranks = nullptr);
  // Of the LibTorch that this build was compiled with.
  static const char* TorchVersion();
  virtual ~Trainer() = default;

  // One step on groups that are complete. The metrics are train/* of
  // docs/run-directory.md. An update whose gradient is not finite is left out
  // and counted (train/skipped_updates).
  virtual Result<MetricList> Step(std::span<const TrainSequence> sequences) = 0;
  // One update towards these responses, all policy tokens alike: supervised
  // training. Rewards and log-probs of the sequences are not read.
  virtual Result<MetricList> Imitate(std::span<const TrainSequence> sequences) = 0;
  // Mean log-prob per policy token, without an update.
  virtual Result<double> MeanLogProb(std::span<const TrainSequence> sequences) = 0;
  virtual double learning_rate() const = 0;  // of the next update, before VCPO's scale

  // A copy of the present weights, for engines and evaluation: on a GPU it stays
  // there, in the engines' dtype.
  virtual Result<WeightSet> Snapshot() const = 0;
  // A copy on the host, in float32.
  virtual Result<WeightSet> HostSnapshot() const = 0;
  virtual Result<TrainerState> Copy() const = 0;
  // Copies a state back; every tensor must be there in its shape.
  virtual Status Restore(const TrainerState& state) = 0;
};

// Takes part in the calls on rank 0's trainer until that is destroyed. REQUIRES: options and
// weights equal on all ranks, ranks.rank() > 0
Status FollowTrainer(const ModelConfig& config, const WeightSet& weights,
                     const TrainerOptions& options, Communicator& ranks);

}  // namespace pace

#endif  // PACE_TRAIN_TRAINER_H_
