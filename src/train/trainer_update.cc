// One update: gradients of a minibatch, summed over its micro-batches.
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/batch_advantages.h"
#include "train/kl_penalty.h"
#include "train/packing.h"
#include "train/torch_trainer.h"
#include "train/value_loss.h"

namespace pace {

TokenBatch TorchTrainer::TokensOf(const Minibatch& batch, std::span<const double> logprobs) const {
  TokenBatch tokens;
  tokens.layout = batch.layout();
  tokens.logprobs = logprobs;
  tokens.rollout_logprobs = batch.rollout_logprobs;
  tokens.proximal_logprobs = batch.proximal_logprobs;
  tokens.reference = options_.reference;
  tokens.advantages = batch.advantages;
  tokens.importance_weights = batch.importance_weights;
  tokens.rewards = batch.rewards;
  return tokens;
}

Result<std::vector<double>> TorchTrainer::WholeGradient(const Minibatch& batch,
                                                        const UpdateRules& rules,
                                                        UpdateSums& sums) const {
  const bool splits = options_.num_threads > 1 ||
                      PackSequences(batch.ForwardLengths(), options_.token_budget).size() > 1;
  if (rules.loss.scope() != LossScope::kMinibatch || !splits) return std::vector<double>();
  PACE_ASSIGN_OR_RETURN(
      const ReductionWeights weights,
      WeighTokens(batch.layout(), CountTotals(batch.layout()), Reduction(rules.reduction)));
  std::vector<double> logprobs;
  ScoreTokens(replicas_, batch, &logprobs, nullptr);
  PACE_ASSIGN_OR_RETURN(LossResult result, rules.loss.Evaluate(TokensOf(batch, logprobs), weights));
  sums.loss += result.loss;
  MergeMetrics(result.metrics, sums.metrics);
  return std::move(result.gradient);
}

// Gradients of one response's log-prob at a time, so that each has its own norm.
Status TorchTrainer::UseOffPolicyBaseline(const OpobOptions& options, Minibatch& batch,
                                          MetricList& metrics) {
  std::vector<double> norms(batch.sequences.size());
  std::vector<double> logprobs(batch.mask.size());
  ZeroGradients();
  replicas_.RunBins(batch, /*token_budget=*/1, [&](const NetworkReplicas::Bin& bin) {
    const size_t sequence = bin.sequences.front();
    const Minibatch part = batch.Part(bin.sequences);
    const PolicyScores scored = ScorePolicyTokens(bin.network, part, options_.temperature);
    if (scored.tokens.empty()) return;
    const auto begin = static_cast<size_t>(batch.offsets[sequence]);
    scored.Spread(scored.logprobs_N, std::span(logprobs).subspan(begin, part.mask.size()));
    torch::autograd::backward({scored.logprobs_N}, {at::ones_like(scored.logprobs_N)});
    norms[sequence] = ClipGradients(bin.network.parameters(), /*max_norm=*/0);
    FreeGradients(bin.network.parameters());
  });
  return ApplyOffPolicyBaseline(options, norms, logprobs, batch, metrics);
}

// `gradient` is d loss / d logprob where the loss has seen the whole minibatch;
// empty: it sees this part.
Status TorchTrainer::AddPolicyTerm(const PolicyScores& scored, const Minibatch& part,
                                   const UpdateRules& rules, const ReductionWeights& weights,
                                   std::vector<double> gradient, std::span<double> logprobs,
                                   UpdateSums& sums, BackwardTerms& terms) const {
  scored.Spread(scored.logprobs_N, logprobs);
  const TokenBatch tokens = TokensOf(part, logprobs);
  if (gradient.empty()) {
    PACE_ASSIGN_OR_RETURN(LossResult result, rules.loss.Evaluate(tokens, weights));
    gradient = std::move(result.gradient);
    sums.loss += result.loss;
    MergeMetrics(result.metrics, sums.metrics);
  }
  const double kl_coefficient = options_.kl.loss_coefficient;
  if (kl_coefficient > 0 && !part.initial_logprobs.empty()) {
    PACE_ASSIGN_OR_RETURN(const KlRegularizerTerm kl,
                          KlRegularizer(tokens, weights, part.initial_logprobs,
                                        options_.kl.loss_estimator, kl_coefficient));
    for (size_t token = 0; token < gradient.size(); ++token) gradient[token] += kl.gradient[token];
    MergeMetrics({{"train/kl_initial", kl.metric.value, kl.metric.weight}}, sums.metrics);
  }
  terms.outputs.push_back(scored.logprobs_N);
  terms.gradients.push_back(scored.Gather(gradient));
  return Status::Ok();
}

// The value loss is a mean over tokens, whatever the reduction of the policy loss.
Status TorchTrainer::AddValueTerm(size_t thread, const PolicyScores& scored, const Minibatch& part,
                                  const MinibatchTotals& totals, UpdateSums& sums,
                                  BackwardTerms& terms) const {
  const ValueHeadOptions& options = options_.value;
  const at::Tensor values_N =
      head_->Values(thread, options.trains_trunk ? scored.hidden_NH : scored.hidden_NH.detach());
  std::vector<double> values(part.mask.size());
  scored.Spread(values_N, values);
  PACE_ASSIGN_OR_RETURN(const ReductionWeights weights,
                        WeighTokens(part.layout(), totals, {.mode = ReductionMode::kTokenMean}));
  const std::optional<double> clip =
      options.clip > 0 ? std::optional<double>(options.clip) : std::nullopt;
  PACE_ASSIGN_OR_RETURN(ValueLossResult loss,
                        ValueLoss(part.layout(), weights, values, part.values, part.returns, clip));
  const auto num_tokens = static_cast<double>(scored.tokens.size());
  // As a mean over the tokens of this part: metrics merge by weight.
  const double mean = loss.loss * static_cast<double>(totals.num_tokens) / num_tokens;
  MergeMetrics({{"train/value_loss", mean, num_tokens}}, sums.metrics);
  MergeMetrics(loss.metrics, sums.metrics);
  terms.outputs.push_back(values_N);
  terms.gradients.push_back(scored.Gather(loss.gradient).mul_(options.coefficient));
  return Status::Ok();
}

// Adds the gradient of one micro-batch and writes its log-probs.
Status TorchTrainer::Accumulate(const NetworkReplicas::Bin& bin, const Minibatch& part,
                                const UpdateRules& rules, const MinibatchTotals& totals,
                                std::vector<double> gradient, std::span<double> logprobs,
                                UpdateSums& sums) const {
  PACE_ASSIGN_OR_RETURN(const ReductionWeights weights,
                        WeighTokens(part.layout(), totals, Reduction(rules.reduction)));
  const PolicyScores scored = ScorePolicyTokens(bin.network, part, options_.temperature);
  if (scored.tokens.empty()) return Status::Ok();
  BackwardTerms terms;
  PACE_RETURN_IF_ERROR(
      AddPolicyTerm(scored, part, rules, weights, std::move(gradient), logprobs, sums, terms));
  const auto num_tokens = static_cast<double>(scored.tokens.size());
  MergeMetrics({{"train/entropy", scored.entropy_N.mean().item<double>(), num_tokens}},
               sums.metrics);
  if (options_.entropy_bonus != 0) {
    terms.outputs.push_back(scored.entropy_N);
    terms.gradients.push_back(scored.Gather(weights.token).mul_(-options_.entropy_bonus));
  }
  if (!part.returns.empty()) {
    PACE_RETURN_IF_ERROR(AddValueTerm(bin.thread, scored, part, totals, sums, terms));
  }
  torch::autograd::backward(terms.outputs, terms.gradients);
  return Status::Ok();
}

Result<double> TorchTrainer::RateScale(const EssLearningRateOptions& options,
                                       const Minibatch& batch, std::span<const double> logprobs,
                                       MetricList& metrics) const {
  PACE_ASSIGN_OR_RETURN(
      const EssLearningRate scaled,
      ScaleLearningRate(batch.layout(), logprobs, batch.rollout_logprobs, options));
  const double used = options.bounded ? scaled.bounded_ess_ratio : scaled.ess_ratio;
  MergeMetrics({{"train/sequence_ess", used, 1}, {"train/lr_scale", scaled.scale, 1}}, metrics);
  return scaled.scale;
}

void TorchTrainer::ZeroGradients() {
  replicas_.ZeroGradients();
  if (head_.has_value()) head_->ZeroGradients();
}

void TorchTrainer::Apply(double scale, bool with_head, MetricList& metrics) {
  replicas_.GatherGradients();
  const double norm = ClipGradients(network().parameters(), options_.max_grad_norm);
  bool finite = std::isfinite(norm);
  if (with_head) {
    const double head_norm = head_->GatherGradients(options_.max_grad_norm);
    finite = finite && std::isfinite(head_norm);
    MergeMetrics({{"train/value_grad_norm", head_norm, 1}}, metrics);
  }
  const double rate = learning_rate() * scale;
  if (finite) {
    optimizer_.Step(rate);
    if (with_head) head_->Step(options_.value.learning_rate);
  }
  ZeroGradients();
  MergeMetrics({{"train/grad_norm", norm, 1},
                {"train/lr", rate, 1},
                {"train/skipped_updates", finite ? 0.0 : 1.0, 1}},
               metrics);
}

Result<MetricList> TorchTrainer::Update(Minibatch& batch, const UpdateRules& rules) {
  UpdateSums sums;
  if (rules.opob != nullptr) {
    PACE_RETURN_IF_ERROR(UseOffPolicyBaseline(*rules.opob, batch, sums.metrics));
  }
  const MinibatchTotals totals = CountTotals(batch.layout());
  PACE_ASSIGN_OR_RETURN(const std::vector<double> whole, WholeGradient(batch, rules, sums));
  ZeroGradients();
  std::vector<double> logprobs(batch.mask.size());
  const auto accumulate = [&](const NetworkReplicas::Bin& bin) {
    const Minibatch part = batch.Part(bin.sequences);
    std::vector<double> gradient;
    for (const size_t sequence : bin.sequences) {
      if (whole.empty()) break;
      gradient.insert(gradient.end(), whole.begin() + batch.offsets[sequence],
                      whole.begin() + batch.offsets[sequence + 1]);
    }
    UpdateSums own;
    std::vector<double> scored(part.mask.size());
    own.status = Accumulate(bin, part, rules, totals, std::move(gradient), scored, own);
    for (size_t i = 0; i < bin.sequences.size(); ++i) {
      std::copy(scored.begin() + part.offsets[i], scored.begin() + part.offsets[i + 1],
                logprobs.begin() + batch.offsets[bin.sequences[i]]);
    }
    return own;
  };
  for (const UpdateSums& own :
       replicas_.ForBins<UpdateSums>(batch, options_.token_budget, accumulate)) {
    PACE_RETURN_IF_ERROR(own.status);
    sums.loss += own.loss;
    MergeMetrics(own.metrics, sums.metrics);
  }
  double scale = 1;
  if (rules.ess != nullptr) {
    PACE_ASSIGN_OR_RETURN(const double scaled,
                          RateScale(*rules.ess, batch, logprobs, sums.metrics));
    scale = scaled;
  }
  MergeMetrics({{"train/loss", sums.loss, 1}}, sums.metrics);
  Apply(scale, /*with_head=*/!batch.returns.empty(), sums.metrics);
  return sums.metrics;
}

}  // namespace pace
