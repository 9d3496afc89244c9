#include "train/trainer.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <numbers>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "train/adamw_reference.h"
#include "train/advantage/advantages.h"
#include "train/loss/losses.h"
#include "train/packing.h"
#include "train/policy_scores.h"

namespace pace {
namespace {

// What an update adds up over its micro-batches.
struct UpdateSums {
  double loss = 0;
  MetricList metrics = {};
};

std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

class TorchTrainer final : public Trainer {
 public:
  TorchTrainer(TrainingNetwork network, const TrainerOptions& options,
               std::unique_ptr<AdvantageEstimator> advantage, std::unique_ptr<PolicyLoss> loss,
               std::unique_ptr<PolicyLoss> imitation)
      : network_(std::move(network)),
        options_(options),
        advantage_(std::move(advantage)),
        loss_(std::move(loss)),
        imitation_(std::move(imitation)),
        optimizer_(network_.parameters(), options.adamw) {
    for (int64_t i = 1; i < options.num_threads; ++i) replicas_.push_back(network_.Replica());
  }

  Result<MetricList> Step(PolicyVersion version, std::span<const TrainSequence> sequences) override;
  Result<MetricList> Imitate(std::span<const TrainSequence> sequences) override;
  Result<double> MeanLogProb(std::span<const TrainSequence> sequences) override;
  const TrainingNetwork& network() const override { return network_; }
  AdamW& optimizer() override { return optimizer_; }
  double learning_rate() const override {
    const int64_t update = optimizer_.num_updates();
    const double rate = WarmupLearningRate(options_.learning_rate, update, options_.warmup_updates);
    if (options_.decay_updates == 0) return rate;
    const double done =
        std::min(1.0, static_cast<double>(update) / static_cast<double>(options_.decay_updates));
    return rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }

 private:
  Result<Minibatch> MakeBatch(std::span<const TrainSequence> sequences) const;
  Status Prepare(Minibatch& batch, MetricList& metrics);
  // Log-probs of all tokens under the present weights, without gradients.
  std::vector<double> LogProbs(const Minibatch& batch);
  Result<MetricList> Update(Minibatch& batch, const PolicyLoss& loss, ReductionMode reduction);
  // Calls `body(network, sequences)` for bins of sequences that fit the token
  // budget, threads side by side; a thread's bins one after the other. Results
  // are in an order that does not depend on timing.
  template <typename T, typename Body>
  std::vector<T> ForBins(const Minibatch& batch, const Body& body);
  Status Accumulate(const TrainingNetwork& network, const Minibatch& part, const PolicyLoss& loss,
                    const MinibatchTotals& totals, ReductionMode reduction,
                    std::span<const double> whole_gradient, UpdateSums& sums) const;
  Result<LossResult> Evaluate(const Minibatch& batch, std::span<const double> logprobs,
                              const PolicyLoss& loss, const ReductionWeights& weights) const;
  Status ApplyCorrection(Minibatch& batch, MetricList& metrics) const;
  void ZeroGradients();
  void SumGradients();
  ReductionOptions Reduction(ReductionMode mode) const {
    return {.mode = mode, .horizon = options_.horizon};
  }

  TrainingNetwork network_;
  std::vector<TrainingNetwork> replicas_;  // one for each thread but the first
  TrainerOptions options_;
  std::unique_ptr<AdvantageEstimator> advantage_;
  std::unique_ptr<PolicyLoss> loss_;
  std::unique_ptr<PolicyLoss> imitation_;
  AdamW optimizer_;
};

Result<Minibatch> TorchTrainer::MakeBatch(std::span<const TrainSequence> sequences) const {
  std::vector<const TrainSequence*> members;
  for (const TrainSequence& sequence : sequences) {
    PACE_RETURN_IF_ERROR(
        sequence.Validate(network_.config().vocab_size).At(Concat("sequence ", members.size())));
    members.push_back(&sequence);
  }
  if (members.empty()) return InvalidArgument("a step without sequences");
  return Minibatch(std::move(members));
}

template <typename T, typename Body>
std::vector<T> TorchTrainer::ForBins(const Minibatch& batch, const Body& body) {
  const std::vector<int64_t> lengths = batch.ForwardLengths();
  const std::vector<std::vector<size_t>> shares = ShareSequences(lengths, options_.num_threads);
  std::vector<std::vector<T>> results(shares.size());
  std::vector<std::exception_ptr> errors(shares.size());
  const auto run = [&](size_t share) {
    try {
      std::vector<int64_t> own;
      for (const size_t sequence : shares[share]) own.push_back(lengths[sequence]);
      const TrainingNetwork& network = share == 0 ? network_ : replicas_[share - 1];
      for (std::vector<size_t>& bin : PackSequences(own, options_.token_budget)) {
        for (size_t& index : bin) index = shares[share][index];
        results[share].push_back(body(network, bin));
      }
    } catch (...) {
      errors[share] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (size_t share = 1; share < shares.size(); ++share) {
    threads.emplace_back([&run, share, grad = at::GradMode::is_enabled()] {
      const at::AutoGradMode mode(grad);
      at::set_num_threads(1);
      run(share);
    });
  }
  run(0);
  for (std::thread& thread : threads) thread.join();
  std::vector<T> all;
  for (size_t share = 0; share < shares.size(); ++share) {
    if (errors[share]) std::rethrow_exception(errors[share]);
    std::move(results[share].begin(), results[share].end(), std::back_inserter(all));
  }
  return all;
}

std::vector<double> TorchTrainer::LogProbs(const Minibatch& batch) {
  const at::NoGradGuard no_grad;
  std::vector<double> logprobs(batch.mask.size());
  // Bins hold different sequences, so threads write to different places.
  ForBins<bool>(batch, [&](const TrainingNetwork& network, const std::vector<size_t>& bin) {
    const Minibatch part = batch.Part(bin);
    std::vector<double> own(part.mask.size());
    const PolicyScores scored = ScorePolicyTokens(network, part, options_.temperature);
    scored.Spread(scored.logprobs_N, own);
    for (size_t i = 0; i < bin.size(); ++i) {
      std::copy(own.begin() + part.offsets[i], own.begin() + part.offsets[i + 1],
                logprobs.begin() + batch.offsets[bin[i]]);
    }
    return true;
  });
  return logprobs;
}

// The log-probs of the proximal policy where they are needed, corrections by
// them, then advantages over what is left.
Status TorchTrainer::Prepare(Minibatch& batch, MetricList& metrics) {
  const bool proximal = options_.reference == RatioReference::kProximal ||
                        loss_->inputs().proximal || options_.correction.active();
  if (proximal) batch.proximal_logprobs = LogProbs(batch);
  if (options_.correction.active()) PACE_RETURN_IF_ERROR(ApplyCorrection(batch, metrics));
  Result<Advantages> advantages =
      advantage_->Estimate({.layout = batch.layout(), .rewards = batch.rewards});
  if (!advantages.ok()) return advantages.status();
  batch.advantages = std::move(advantages->advantages);
  return Status::Ok();
}

Result<LossResult> TorchTrainer::Evaluate(const Minibatch& batch, std::span<const double> logprobs,
                                          const PolicyLoss& loss,
                                          const ReductionWeights& weights) const {
  TokenBatch tokens;
  tokens.layout = batch.layout();
  tokens.logprobs = logprobs;
  tokens.rollout_logprobs = batch.rollout_logprobs;
  tokens.proximal_logprobs = batch.proximal_logprobs;
  tokens.reference = options_.reference;
  tokens.advantages = batch.advantages;
  tokens.importance_weights = batch.importance_weights;
  tokens.rewards = batch.rewards;
  return loss.Evaluate(tokens, weights);
}

Status TorchTrainer::ApplyCorrection(Minibatch& batch, MetricList& metrics) const {
  Result<Correction> correction = CorrectRollout(batch.layout(), batch.proximal_logprobs,
                                                 batch.rollout_logprobs, options_.correction);
  if (!correction.ok()) return correction.status();
  batch.importance_weights = std::move(correction->weights);
  batch.mask = std::move(correction->mask);
  MergeMetrics(correction->metrics, metrics);
  return Status::Ok();
}

// Adds the gradient of one micro-batch. `whole_gradient` is d loss / d logprob
// of its tokens where the loss had to see the whole minibatch at once.
Status TorchTrainer::Accumulate(const TrainingNetwork& network, const Minibatch& part,
                                const PolicyLoss& loss, const MinibatchTotals& totals,
                                ReductionMode reduction, std::span<const double> whole_gradient,
                                UpdateSums& sums) const {
  const Result<ReductionWeights> weights = WeighTokens(part.layout(), totals, Reduction(reduction));
  if (!weights.ok()) return weights.status();
  const PolicyScores scored = ScorePolicyTokens(network, part, options_.temperature);
  if (scored.tokens.empty()) return Status::Ok();
  std::vector<double> gradient(whole_gradient.begin(), whole_gradient.end());
  if (gradient.empty()) {
    std::vector<double> logprobs(part.mask.size());
    scored.Spread(scored.logprobs_N, logprobs);
    Result<LossResult> result = Evaluate(part, logprobs, loss, *weights);
    if (!result.ok()) return result.status();
    gradient = std::move(result->gradient);
    sums.loss += result->loss;
    MergeMetrics(result->metrics, sums.metrics);
  }
  const auto num_tokens = static_cast<double>(scored.tokens.size());
  MergeMetrics({{"train/entropy", scored.entropy_N.mean().item<double>(), num_tokens}},
               sums.metrics);
  std::vector<at::Tensor> outputs = {scored.logprobs_N};
  std::vector<at::Tensor> gradients = {scored.Gather(gradient)};
  if (options_.entropy_bonus != 0) {
    outputs.push_back(scored.entropy_N);
    gradients.push_back(scored.Gather(weights->token).mul_(-options_.entropy_bonus));
  }
  torch::autograd::backward(outputs, gradients);
  return Status::Ok();
}

void TorchTrainer::ZeroGradients() {
  optimizer_.ZeroGrad();
  for (const TrainingNetwork& replica : replicas_) {
    for (const auto& [name, parameter] : replica.parameters()) {
      at::Tensor(parameter).mutable_grad() = at::Tensor();
    }
  }
}

// The threads' gradients, in their order.
void TorchTrainer::SumGradients() {
  const at::NoGradGuard no_grad;
  for (const TrainingNetwork& replica : replicas_) {
    for (const auto& [name, parameter] : replica.parameters()) {
      if (!parameter.grad().defined()) continue;
      at::Tensor own = network_.parameters().at(name);
      if (own.grad().defined()) {
        own.mutable_grad().add_(parameter.grad());
      } else {
        own.mutable_grad() = parameter.grad();
      }
    }
  }
}

Result<MetricList> TorchTrainer::Update(Minibatch& batch, const PolicyLoss& loss,
                                        ReductionMode reduction) {
  const MinibatchTotals totals = CountTotals(batch.layout());
  UpdateSums sums;
  std::vector<double> whole;
  const bool splits = options_.num_threads > 1 ||
                      PackSequences(batch.ForwardLengths(), options_.token_budget).size() > 1;
  if (loss.scope() == LossScope::kMinibatch && splits) {
    const Result<ReductionWeights> weights =
        WeighTokens(batch.layout(), totals, Reduction(reduction));
    if (!weights.ok()) return weights.status();
    Result<LossResult> result = Evaluate(batch, LogProbs(batch), loss, *weights);
    if (!result.ok()) return result.status();
    whole = std::move(result->gradient);
    sums = {.loss = result->loss, .metrics = std::move(result->metrics)};
  }
  ZeroGradients();
  struct BinResult {
    Status status;
    UpdateSums sums;
  };
  const std::vector<BinResult> results = ForBins<BinResult>(
      batch, [&](const TrainingNetwork& network, const std::vector<size_t>& bin) {
        std::vector<double> gradient;
        for (const size_t sequence : bin) {
          if (whole.empty()) break;
          gradient.insert(gradient.end(), whole.begin() + batch.offsets[sequence],
                          whole.begin() + batch.offsets[sequence + 1]);
        }
        BinResult result;
        result.status =
            Accumulate(network, batch.Part(bin), loss, totals, reduction, gradient, result.sums);
        return result;
      });
  for (const BinResult& result : results) {
    PACE_RETURN_IF_ERROR(result.status);
    sums.loss += result.sums.loss;
    MergeMetrics(result.sums.metrics, sums.metrics);
  }
  SumGradients();
  const double norm = ClipGradients(network_.parameters(), options_.max_grad_norm);
  const double rate = learning_rate();
  const bool finite = std::isfinite(norm);
  if (finite) optimizer_.Step(rate);
  ZeroGradients();
  MergeMetrics({{"train/loss", sums.loss, 1},
                {"train/grad_norm", norm, 1},
                {"train/lr", rate, 1},
                {"train/skipped_updates", finite ? 0.0 : 1.0, 1}},
               sums.metrics);
  return sums.metrics;
}

Result<MetricList> TorchTrainer::Step(PolicyVersion /*version*/,
                                      std::span<const TrainSequence> sequences) {
  try {
    Result<Minibatch> batch = MakeBatch(sequences);
    if (!batch.ok()) return batch.status();
    MetricList metrics;
    PACE_RETURN_IF_ERROR(Prepare(*batch, metrics));
    const ReductionMode reduction = options_.reduction.value_or(loss_->paper_reduction());
    for (const std::vector<size_t>& part : SplitByGroups(sequences, options_.num_minibatches)) {
      Minibatch minibatch = batch->Part(part);
      const Result<MetricList> update = Update(minibatch, *loss_, reduction);
      if (!update.ok()) return update.status();
      MergeMetrics(*update, metrics);
    }
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
    Result<Minibatch> batch = MakeBatch(sequences);
    if (!batch.ok()) return batch.status();
    batch->advantages.assign(batch->mask.size(), 1.0);
    return Update(*batch, *imitation_, ReductionMode::kTokenMean);
  } catch (const std::exception& error) {
    return Unavailable("training step: ", FirstLine(error));
  }
}

Result<double> TorchTrainer::MeanLogProb(std::span<const TrainSequence> sequences) {
  try {
    Result<Minibatch> batch = MakeBatch(sequences);
    if (!batch.ok()) return batch.status();
    const std::vector<double> logprobs = LogProbs(*batch);
    MeanOf mean;
    for (size_t token = 0; token < logprobs.size(); ++token) {
      if (batch->mask[token] != 0) mean.Add(logprobs[token]);
    }
    return mean.value();
  } catch (const std::exception& error) {
    return Unavailable("scoring: ", FirstLine(error));
  }
}

}  // namespace

Status TrainerOptions::Validate() const {
  if (!(learning_rate >= 0)) {
    return InvalidArgument("learning_rate = ", learning_rate, ": must be >= 0");
  }
  if (warmup_updates < 0) {
    return InvalidArgument("warmup_updates = ", warmup_updates, ": must be >= 0");
  }
  if (decay_updates < 0) {
    return InvalidArgument("decay_updates = ", decay_updates, ": must be >= 0");
  }
  if (!(max_grad_norm >= 0)) {
    return InvalidArgument("max_grad_norm = ", max_grad_norm, ": must be >= 0 (0 = no clipping)");
  }
  if (!(temperature > 0)) return InvalidArgument("temperature = ", temperature, ": must be > 0");
  if (num_minibatches < 1) {
    return InvalidArgument("num_minibatches = ", num_minibatches, ": must be at least 1");
  }
  if (token_budget < 1) {
    return InvalidArgument("token_budget = ", token_budget, ": must be at least 1");
  }
  if (num_threads < 1) {
    return InvalidArgument("num_threads = ", num_threads, ": must be at least 1");
  }
  PACE_RETURN_IF_ERROR(correction.Validate());
  return adamw.Validate();
}

Result<std::unique_ptr<Trainer>> Trainer::Create(TrainingNetwork network,
                                                 const TrainerOptions& options) {
  PACE_RETURN_IF_ERROR(options.Validate());
  Result<std::unique_ptr<AdvantageEstimator>> advantage =
      MakeAdvantageEstimator(options.advantage, options.advantage_settings);
  if (!advantage.ok()) return advantage.status();
  Result<std::unique_ptr<PolicyLoss>> loss = MakePolicyLoss(options.loss, options.loss_settings);
  if (!loss.ok()) return loss.status();
  // -log pi per token: REINFORCE with an advantage of 1.
  Result<std::unique_ptr<PolicyLoss>> imitation = MakePolicyLoss("reinforce");
  if (!imitation.ok()) return imitation.status();
  return std::unique_ptr<Trainer>(
      new TorchTrainer(std::move(network), options, std::move(advantage).value(),
                       std::move(loss).value(), std::move(imitation).value()));
}

}  // namespace pace
