#include "train/trainer.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "train/batch_advantages.h"
#include "train/torch_trainer.h"

namespace pace {
namespace {

std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

std::optional<NetworkReplicas> TeamOf(std::optional<TrainingNetwork> network, int64_t num_threads) {
  if (!network.has_value()) return std::nullopt;
  return NetworkReplicas(std::move(*network), num_threads);
}

}  // namespace

TorchTrainer::TorchTrainer(TrainingNetwork network, const TrainerOptions& options, Parts parts,
                           std::optional<TrainingNetwork> initial)
    : options_(options),
      parts_(std::move(parts)),
      replicas_(std::move(network), options.num_threads),
      initial_(TeamOf(std::move(initial), options.num_threads)),
      optimizer_(replicas_.network().parameters(), options.adamw),
      kl_coefficient_(options.kl.reward_coefficient) {
  if (!parts_.advantage->inputs().values) return;
  const at::Tensor& parameter = replicas_.network().head_VH();
  const at::TensorOptions tensors =
      at::TensorOptions(parameter.device()).dtype(parameter.scalar_type());
  head_.emplace(replicas_.network().config().hidden_size, tensors, options.adamw,
                options.num_threads);
}

Result<Minibatch> TorchTrainer::MakeBatch(std::span<const TrainSequence> sequences) const {
  std::vector<const TrainSequence*> members;
  for (const TrainSequence& sequence : sequences) {
    PACE_RETURN_IF_ERROR(
        sequence.Validate(network().config().vocab_size).At(Concat("sequence ", members.size())));
    members.push_back(&sequence);
  }
  if (members.empty()) return InvalidArgument("a step without sequences");
  return Minibatch(std::move(members));
}

void TorchTrainer::ScoreTokens(const NetworkReplicas& replicas, const Minibatch& batch,
                               std::vector<double>* logprobs, std::vector<double>* values) const {
  if (logprobs == nullptr && values == nullptr) return;
  const at::NoGradGuard no_grad;
  for (std::vector<double>* out : {logprobs, values}) {
    if (out != nullptr) out->assign(batch.mask.size(), 0.0);
  }
  // Bins hold different sequences, so threads write to different places.
  replicas.RunBins(batch, options_.token_budget, [&](const NetworkReplicas::Bin& bin) {
    const Minibatch part = batch.Part(bin.sequences);
    const auto keep = [&](const PolicyRows& rows, const at::Tensor& scores_N,
                          std::vector<double>& out) {
      std::vector<double> own(part.mask.size());
      rows.Spread(scores_N, own);
      for (size_t i = 0; i < bin.sequences.size(); ++i) {
        std::copy(own.begin() + part.offsets[i], own.begin() + part.offsets[i + 1],
                  out.begin() + batch.offsets[bin.sequences[i]]);
      }
    };
    if (logprobs == nullptr) {
      const PolicyRows rows = ForwardPolicyRows(bin.network, part);
      return keep(rows, head_->Values(bin.thread, rows.hidden_NH), *values);
    }
    const PolicyScores scored = ScorePolicyTokens(bin.network, part, options_.temperature);
    keep(scored, scored.logprobs_N, *logprobs);
    if (values != nullptr) keep(scored, head_->Values(bin.thread, scored.hidden_NH), *values);
  });
}

// What the step's policy and the initial one make of the responses, corrections by
// it, then advantages over what is left.
Status TorchTrainer::Prepare(Minibatch& batch, MetricList& metrics, double& next_kl) {
  const bool proximal = options_.reference == RatioReference::kProximal ||
                        parts_.loss->inputs().proximal || options_.correction.active();
  ScoreTokens(replicas_, batch, proximal ? &batch.proximal_logprobs : nullptr,
              head_.has_value() ? &batch.values : nullptr);
  if (initial_.has_value()) ScoreTokens(*initial_, batch, &batch.initial_logprobs, nullptr);
  if (options_.correction.active()) {
    PACE_RETURN_IF_ERROR(ApplyCorrection(options_.correction, batch, metrics));
  }
  if (options_.kl.reward_coefficient > 0) {
    PACE_ASSIGN_OR_RETURN(const double kl,
                          ShapeRewards(options_.kl.reward_estimator, kl_coefficient_,
                                       options_.reference, batch, metrics));
    next_kl = NextKlCoefficient(kl_coefficient_, kl, static_cast<int64_t>(batch.sequences.size()),
                                options_.kl.controller);
  }
  return EstimateAdvantages(*parts_.advantage, batch, metrics);
}

Result<MetricList> TorchTrainer::Step(PolicyVersion /*version*/,
                                      std::span<const TrainSequence> sequences) {
  try {
    PACE_ASSIGN_OR_RETURN(Minibatch batch, MakeBatch(sequences));
    MetricList metrics;
    double next_kl = kl_coefficient_;
    PACE_RETURN_IF_ERROR(Prepare(batch, metrics, next_kl));
    const UpdateRules rules{
        .loss = *parts_.loss,
        .reduction = options_.reduction.value_or(parts_.loss->paper_reduction()),
        .ess = options_.ess.has_value() ? &*options_.ess : nullptr,
        .opob = options_.opob.has_value() ? &*options_.opob : nullptr};
    for (const std::vector<size_t>& part : SplitByGroups(sequences, options_.num_minibatches)) {
      Minibatch minibatch = batch.Part(part);
      PACE_ASSIGN_OR_RETURN(const MetricList update, Update(minibatch, rules));
      MergeMetrics(update, metrics);
    }
    kl_coefficient_ = next_kl;
    double reward = 0;
    for (const TrainSequence& sequence : sequences) reward += sequence.reward;
    const auto count = static_cast<double>(sequences.size());
    MergeMetrics({{"train/reward", reward / count, count}}, metrics);
    return metrics;
  } catch (const std::exception& error) {
    return Unavailable("training step: ", FirstLine(error));
  }
}

Result<MetricList> TorchTrainer::Imitate(std::span<const TrainSequence> sequences) {
  try {
    PACE_ASSIGN_OR_RETURN(Minibatch batch, MakeBatch(sequences));
    batch.advantages.assign(batch.mask.size(), 1.0);
    return Update(batch, {.loss = *parts_.imitation});
  } catch (const std::exception& error) {
    return Unavailable("training step: ", FirstLine(error));
  }
}

Result<double> TorchTrainer::MeanLogProb(std::span<const TrainSequence> sequences) {
  try {
    PACE_ASSIGN_OR_RETURN(Minibatch batch, MakeBatch(sequences));
    std::vector<double> logprobs;
    ScoreTokens(replicas_, batch, &logprobs, nullptr);
    MeanOf mean;
    for (size_t token = 0; token < logprobs.size(); ++token) {
      if (batch.mask[token] != 0) mean.Add(logprobs[token]);
    }
    return mean.value();
  } catch (const std::exception& error) {
    return Unavailable("scoring: ", FirstLine(error));
  }
}

TrainerState TorchTrainer::State() const {
  TrainerState state{.tensors = optimizer_.State(),
                     .num_updates = optimizer_.num_updates(),
                     .kl_coefficient = kl_coefficient_};
  if (head_.has_value()) state.tensors.merge(head_->State());
  return state;
}

Status TorchTrainer::Restore(const TrainerState& state) {
  PACE_RETURN_IF_ERROR(optimizer_.Restore(state.tensors, state.num_updates));
  if (head_.has_value()) {
    PACE_RETURN_IF_ERROR(head_->Restore(state.tensors, state.num_updates));
  }
  kl_coefficient_ = state.kl_coefficient;
  return Status::Ok();
}

Result<std::unique_ptr<Trainer>> Trainer::Create(TrainingNetwork network,
                                                 const TrainerOptions& options,
                                                 std::optional<TrainingNetwork> initial) {
  PACE_RETURN_IF_ERROR(options.Validate());
  if (options.kl.active() && !initial.has_value()) {
    return InvalidArgument("kl: there is no initial policy to measure the distance from");
  }
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<AdvantageEstimator> advantage,
                        MakeAdvantageEstimator(options.advantage));
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<PolicyLoss> loss, MakePolicyLoss(options.loss));
  // -log pi per token: REINFORCE with an advantage of 1.
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<PolicyLoss> imitation, MakePolicyLoss("reinforce"));
  return std::unique_ptr<Trainer>(new TorchTrainer(std::move(network), options,
                                                   {.advantage = std::move(advantage),
                                                    .loss = std::move(loss),
                                                    .imitation = std::move(imitation)},
                                                   std::move(initial)));
}

}  // namespace pace
