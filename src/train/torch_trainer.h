// TorchTrainer: the Trainer of trainer.h, with what its tests look at.
#ifndef PACE_TRAIN_TORCH_TRAINER_H_
#define PACE_TRAIN_TORCH_TRAINER_H_

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/torch/training_network.h"
#include "ranks/communicator.h"
#include "train/adamw.h"
#include "train/advantage/advantages.h"
#include "train/loss/losses.h"
#include "train/loss/policy_term.h"
#include "train/network_replicas.h"
#include "train/parameter_shards.h"
#include "train/policy_scores.h"
#include "train/rank_messages.h"
#include "train/trainer.h"
#include "train/value_head.h"

namespace pace {

class TorchTrainer final : public Trainer {
 public:
  // `initial` is the policy that KL penalties measure the distance from; it does not
  // change, and is needed where options.kl is active. With `ranks`, which outlive it, every rank
  // has such a trainer and makes the same calls on it, Step with the same sequences
  // (leading_trainer.h does that).
  static Result<std::unique_ptr<TorchTrainer>> Create(
      TrainingNetwork network, const TrainerOptions& options,
      std::optional<TrainingNetwork> initial = std::nullopt, Communicator* ranks = nullptr);

  Result<MetricList> Step(std::span<const TrainSequence> sequences) override;
  Result<MetricList> Imitate(std::span<const TrainSequence> sequences) override;
  Result<double> MeanLogProb(std::span<const TrainSequence> sequences) override;
  double learning_rate() const override { return options_.LearningRate(optimizer_.num_updates()); }
  Result<WeightSet> Snapshot() const override;
  Result<WeightSet> HostSnapshot() const override { return GatherWeights(/*keep=*/true); }
  Result<TrainerState> Copy() const override { return GatherState(/*keep=*/true); }
  // Rank 0's state counts; the others may pass an empty one.
  Status Restore(const TrainerState& state) override;

  // Weights and moments of all ranks: where each keeps a part, every rank calls these. Without
  // `keep` the result is empty.
  Result<WeightSet> GatherWeights(bool keep) const;
  Result<TrainerState> GatherState(bool keep) const;
  // Whether a rank has all of it by itself.
  bool has_whole_weights() const { return options_.shard != ShardMode::kFull || !has_ranks(); }
  bool has_whole_state() const { return options_.shard == ShardMode::kNone || !has_ranks(); }

  const TrainingNetwork& network() const { return replicas_.network(); }
  AdamW& optimizer() { return optimizer_; }
  // Moments and the value head, shared: copy them before the next step.
  NamedTensors Tensors() const;
  double kl_coefficient() const { return kl_coefficient_; }

 private:
  struct Parts {
    std::unique_ptr<AdvantageEstimator> advantage;
    std::unique_ptr<PolicyLoss> loss;
    std::unique_ptr<PolicyLoss> imitation;
  };
  TorchTrainer(TrainingNetwork network, const TrainerOptions& options, Parts parts,
               std::optional<TrainingNetwork> initial, Communicator* ranks);
  bool has_ranks() const { return ranks_ != nullptr && ranks_->size() > 1; }

  template <typename Value, typename Body>
  Result<Value> Guarded(const char* what, const Body& body);

  // What one update follows. KL and value terms come with their arrays.
  struct UpdateRules {
    const PolicyLoss& loss;
    ReductionMode reduction = ReductionMode::kTokenMean;
    const EssLearningRateOptions* ess = nullptr;
    const OpobOptions* opob = nullptr;
    bool skip_equal_rewards = false;
  };
  // A tensor to differentiate and d objective / d tensor.
  struct BackwardTerms {
    std::vector<at::Tensor> outputs = {};
    std::vector<at::Tensor> gradients = {};
  };

  Result<Minibatch> MakeBatch(std::span<const TrainSequence> sequences) const;
  // `next_kl`: the coefficient of the next step, if this one succeeds.
  Status Prepare(Minibatch& batch, MetricList& metrics, double& next_kl);
  // Log-probs and values of all policy tokens under the present weights, without
  // gradients; null = not wanted.
  Status ScoreTokens(const NetworkReplicas& replicas, const Minibatch& batch,
                     std::vector<double>* logprobs, std::vector<double>* values) const;
  // Numbers that one rank has and the others have as 0: on all of them.
  Status Share(std::vector<double>& values) const;
  // The sums of all ranks, on all of them.
  Result<UpdateSums> Share(const UpdateSums& own) const;

  Result<MetricList> Update(Minibatch& batch, const UpdateRules& rules);
  // d loss / d logprob where the loss must see a whole minibatch that is split;
  // empty where it need not.
  Result<std::vector<double>> WholeGradient(const Minibatch& batch, const MinibatchTotals& totals,
                                            const UpdateRules& rules, UpdateSums& sums) const;
  Status UseOffPolicyBaseline(const OpobOptions& options, Minibatch& batch, MetricList& metrics);
  Status Accumulate(const NetworkReplicas::Bin& bin, const Minibatch& part,
                    const UpdateRules& rules, const MinibatchTotals& totals,
                    std::span<const double> gradient, std::span<double> logprobs,
                    UpdateSums& sums) const;
  // Writes log-probs as it gets them; empty where the term compares tokens. Borrows all of it.
  SlopesOfPolicy SlopesOf(const Minibatch& part, const PolicyTerm& term, std::span<double> logprobs,
                          Status& failed) const;
  Status AddValueTerm(size_t thread, const PolicyScores& scored, const Minibatch& part,
                      const MinibatchTotals& totals, UpdateSums& sums, BackwardTerms& terms) const;
  Result<double> RateScale(const EssLearningRateOptions& options, const Minibatch& batch,
                           std::span<const double> logprobs, MetricList& metrics) const;
  // Clips and applies the gradients that are there. `scale` is VCPO's.
  Status Apply(double scale, bool with_head, MetricList& metrics);
  void ZeroGradients();

  WeightSet HostWeights(const WeightSet& live) const;
  Result<NamedTensors> ReadState(const TrainerState& state) const;
  Status ShareTensor(at::Tensor& tensor, const std::vector<int64_t>& shape) const;

  TokenBatch TokensOf(const Minibatch& batch, std::span<const double> logprobs) const;
  ReductionOptions Reduction(ReductionMode mode) const {
    return {.mode = mode, .horizon = options_.horizon};
  }

  const TrainerOptions options_;
  const Parts parts_;
  Communicator* const ranks_;  // may be null
  const std::unique_ptr<ParameterShards> shards_;
  NetworkReplicas replicas_;
  const std::optional<NetworkReplicas> initial_;
  std::optional<ValueHead> head_;
  AdamW optimizer_;
  double kl_coefficient_;
  int64_t num_gated_ = 0;  // calls that shared the gate
};

}  // namespace pace

#endif  // PACE_TRAIN_TORCH_TRAINER_H_
