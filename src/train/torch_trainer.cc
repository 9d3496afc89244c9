#include "train/torch_trainer.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <utility>

#include "model/cuda/capture_gate.h"
#include "train/batch_advantages.h"
#include "train/math/kl_penalty.h"
#include "train/math/value_loss.h"
#include "train/minibatch.h"
#include "train/rank_messages.h"

namespace pace {
namespace {

// The first calls on a GPU may load kernels (CaptureGate).
constexpr int64_t kLoadingCalls = 3;

std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

std::optional<NetworkReplicas> ReplicasOf(std::optional<TrainingNetwork> network,
                                          int64_t num_threads, ParameterShards& shards) {
  if (!network.has_value()) return std::nullopt;
  return NetworkReplicas(std::move(*network), num_threads, &shards, /*passes=*/false);
}

std::span<float> FloatsOf(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

// Takes float32 copies on the host, where they are to be kept.
ParameterShards::Take HostCopies(bool keep, const std::string& suffix, NamedTensors& to) {
  if (!keep) return [](const std::string& /*name*/, const at::Tensor& /*whole*/) {};
  return [suffix, &to](const std::string& name, const at::Tensor& whole) {
    to.emplace(name + suffix, whole.detach().to(at::kCPU, at::kFloat).contiguous().clone());
  };
}

TensorViews ViewsOf(const NamedTensors& tensors) {
  TensorViews views;
  for (const auto& [name, tensor] : tensors) {
    views.emplace(name, TensorView{.dtype = Dtype::kF32,
                                   .shape = tensor.sizes().vec(),
                                   .bytes = std::as_bytes(FloatsOf(tensor))});
  }
  return views;
}

}  // namespace

TorchTrainer::TorchTrainer(TrainingNetwork network, const TrainerOptions& options, Parts parts,
                           std::optional<TrainingNetwork> initial, Communicator* ranks)
    : options_(options),
      parts_(std::move(parts)),
      ranks_(ranks),
      shards_(std::make_unique<ParameterShards>(network, options.shard, ranks)),
      replicas_(std::move(network), options.num_threads, shards_.get(), /*passes=*/true),
      initial_(ReplicasOf(std::move(initial), options.num_threads, *shards_)),
      optimizer_(shards_->own(), options.adamw),
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

Status TorchTrainer::Share(std::vector<double>& values) const {
  if (!has_ranks()) return Status::Ok();
  return ranks_->AllReduce(
      at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble));
}

Status TorchTrainer::ScoreTokens(const NetworkReplicas& replicas, const Minibatch& batch,
                                 std::vector<double>* logprobs, std::vector<double>* values) const {
  if (logprobs == nullptr && values == nullptr) return Status::Ok();
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
  for (std::vector<double>* out : {logprobs, values}) {
    if (out != nullptr) PACE_RETURN_IF_ERROR(Share(*out));
  }
  return Status::Ok();
}

// What the step's policy and the initial one make of the responses, corrections by
// it, then advantages over what is left.
Status TorchTrainer::Prepare(Minibatch& batch, MetricList& metrics, double& next_kl) {
  const bool proximal = options_.reference == RatioReference::kProximal ||
                        parts_.loss->inputs().proximal || options_.correction.active();
  PACE_RETURN_IF_ERROR(ScoreTokens(replicas_, batch, proximal ? &batch.proximal_logprobs : nullptr,
                                   head_.has_value() ? &batch.values : nullptr));
  if (initial_.has_value()) {
    PACE_RETURN_IF_ERROR(ScoreTokens(*initial_, batch, &batch.initial_logprobs, nullptr));
  }
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

// One update: gradients of a minibatch, summed over its micro-batches.

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
                                                        const MinibatchTotals& totals,
                                                        const UpdateRules& rules,
                                                        UpdateSums& sums) const {
  const bool splits = options_.num_threads > 1 || has_ranks() ||
                      PackSequences(batch.ForwardLengths(), options_.token_budget).size() > 1;
  if (rules.loss.scope() != LossScope::kMinibatch || !splits) return std::vector<double>();
  PACE_ASSIGN_OR_RETURN(const ReductionWeights weights,
                        WeighTokens(batch.layout(), totals, Reduction(rules.reduction)));
  std::vector<double> logprobs;
  PACE_RETURN_IF_ERROR(ScoreTokens(replicas_, batch, &logprobs, nullptr));
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
  shards_->Measure(true);
  replicas_.RunBins(batch, /*token_budget=*/1, [&](const NetworkReplicas::Bin& bin) {
    const size_t sequence = bin.sequences.front();
    const Minibatch part = batch.Part(bin.sequences);
    const PolicyScores scored = ScorePolicyTokens(bin.network, part, options_.temperature);
    if (scored.tokens.empty()) return;
    const auto begin = static_cast<size_t>(batch.offsets[sequence]);
    scored.Spread(scored.logprobs_N, std::span(logprobs).subspan(begin, part.mask.size()));
    torch::autograd::backward({scored.logprobs_N}, {at::ones_like(scored.logprobs_N)});
    norms[sequence] = shards_->TakeMeasured(bin.network.parameters());
  });
  shards_->Measure(false);
  PACE_RETURN_IF_ERROR(Share(norms));
  PACE_RETURN_IF_ERROR(Share(logprobs));
  return ApplyOffPolicyBaseline(options, norms, logprobs, batch, metrics);
}

// Where the loss lets them, gradients of the logits are computed while the logits are there.
SlopesOfPolicy TorchTrainer::SlopesOf(const Minibatch& part, const PolicyTerm& term,
                                      std::span<double> logprobs, Status& failed) const {
  if (!term.IsOfSingleTokens()) return {};
  return [this, &part, &term, logprobs, &failed](const PolicyRows& rows, int64_t first,
                                                 const at::Tensor& logprobs_N) -> RowSlopes {
    const auto begin = static_cast<size_t>(first);
    const auto count = static_cast<size_t>(logprobs_N.numel());
    const size_t begin_token = rows.tokens[begin];
    const size_t end_token = rows.tokens[begin + count - 1] + 1;
    rows.Spread(logprobs_N, logprobs, begin);
    Result<std::vector<double>> slopes =
        term.Slopes(TokensOf(part, logprobs), begin_token, end_token);
    if (!slopes.ok()) {
      failed = slopes.status();
      slopes = std::vector<double>(end_token - begin_token);
    }
    RowSlopes out{.of_logprob_N = rows.GatherRange(*slopes, begin, count)};
    if (options_.entropy_bonus != 0) {
      out.of_entropy_N =
          rows.GatherRange(std::span(term.weights.token).subspan(begin_token), begin, count)
              .mul_(-options_.entropy_bonus);
    }
    return out;
  };
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
                                std::span<const double> gradient, std::span<double> logprobs,
                                UpdateSums& sums) const {
  PACE_ASSIGN_OR_RETURN(const ReductionWeights weights,
                        WeighTokens(part.layout(), totals, Reduction(rules.reduction)));
  const PolicyTerm term = {.loss = rules.loss,
                           .weights = weights,
                           .given = gradient,
                           .initial_logprobs = part.initial_logprobs,
                           .kl = options_.kl.loss_estimator,
                           .kl_coefficient = options_.kl.loss_coefficient};
  Status failed;
  const PolicyScores scored = ScorePolicyTokens(bin.network, part, options_.temperature,
                                                SlopesOf(part, term, logprobs, failed));
  PACE_RETURN_IF_ERROR(failed);
  if (scored.tokens.empty()) return Status::Ok();
  scored.Spread(scored.logprobs_N, logprobs);
  PACE_ASSIGN_OR_RETURN(LossResult result, term.Evaluate(TokensOf(part, logprobs)));
  sums.loss += result.loss;
  MergeMetrics(result.metrics, sums.metrics);
  BackwardTerms terms = {.outputs = {scored.logprobs_N},
                         .gradients = {scored.Gather(result.gradient)}};
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
  shards_->ZeroGradients();
  if (head_.has_value()) head_->ZeroGradients();
}

Status TorchTrainer::Apply(double scale, bool with_head, MetricList& metrics) {
  replicas_.GatherGradients();
  PACE_RETURN_IF_ERROR(shards_->SumGradients());
  PACE_ASSIGN_OR_RETURN(const double norm, shards_->NormOfGradients());
  bool finite = std::isfinite(norm);
  double head_norm = 0;
  if (with_head) {
    PACE_ASSIGN_OR_RETURN(head_norm, head_->GatherGradients(ranks_));
    finite = finite && std::isfinite(head_norm);
    MergeMetrics({{"train/value_grad_norm", head_norm, 1}}, metrics);
  }
  const double rate = learning_rate() * scale;
  if (finite) {
    optimizer_.Step(rate, GradientFactor(norm, options_.max_grad_norm));
    PACE_RETURN_IF_ERROR(shards_->ShareUpdate());
    if (with_head) {
      head_->Step(options_.value.learning_rate, GradientFactor(head_norm, options_.max_grad_norm));
    }
  }
  ZeroGradients();
  MergeMetrics({{"train/grad_norm", norm, 1},
                {"train/lr", rate, 1},
                {"train/skipped_updates", finite ? 0.0 : 1.0, 1}},
               metrics);
  return Status::Ok();
}

Result<UpdateSums> TorchTrainer::Share(const UpdateSums& own) const {
  if (!has_ranks()) return own;
  PACE_ASSIGN_OR_RETURN(const std::vector<std::string> all, ranks_->GatherBytes(EncodeSums(own)));
  UpdateSums sums;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    PACE_ASSIGN_OR_RETURN(UpdateSums part, DecodeSums(all[rank]));
    part.status = part.status.At(Concat("rank ", rank));
    sums.Add(part);
  }
  return sums;
}

Result<MetricList> TorchTrainer::Update(Minibatch& batch, const UpdateRules& rules) {
  UpdateSums sums;
  if (rules.opob != nullptr) {
    PACE_RETURN_IF_ERROR(UseOffPolicyBaseline(*rules.opob, batch, sums.metrics));
  }
  const MinibatchTotals totals = CountTotals(batch.layout());
  if (rules.skip_equal_rewards) batch = batch.Part(WithDifferentRewards(batch.sequences));
  PACE_ASSIGN_OR_RETURN(const std::vector<double> whole, WholeGradient(batch, totals, rules, sums));
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
    own.status = Accumulate(bin, part, rules, totals, gradient, scored, own);
    for (size_t i = 0; i < bin.sequences.size(); ++i) {
      std::copy(scored.begin() + part.offsets[i], scored.begin() + part.offsets[i + 1],
                logprobs.begin() + batch.offsets[bin.sequences[i]]);
    }
    return own;
  };
  UpdateSums of_rank;
  for (const UpdateSums& own :
       replicas_.ForBins<UpdateSums>(batch, options_.token_budget, accumulate)) {
    of_rank.Add(own);
  }
  PACE_ASSIGN_OR_RETURN(const UpdateSums of_all, Share(of_rank));
  sums.Add(of_all);
  PACE_RETURN_IF_ERROR(sums.status);
  double scale = 1;
  if (rules.ess != nullptr) {
    PACE_RETURN_IF_ERROR(Share(logprobs));
    PACE_ASSIGN_OR_RETURN(const double scaled,
                          RateScale(*rules.ess, batch, logprobs, sums.metrics));
    scale = scaled;
  }
  MergeMetrics({{"train/loss", sums.loss, 1}}, sums.metrics);
  PACE_RETURN_IF_ERROR(Apply(scale, /*with_head=*/!batch.returns.empty(), sums.metrics));
  return sums.metrics;
}

// Under LibTorch's conditions: its exceptions become a Status, its threads stay ours, and
// the first calls on a GPU, which may load kernels, share the gate.
template <typename Value, typename Body>
Result<Value> TorchTrainer::Guarded(const char* what, const Body& body) {
  // The trainer has threads of its own; LibTorch counts per calling thread.
  at::set_num_threads(1);
  std::optional<SharedCaptureGate> gate;
  if (options_.device == DeviceKind::kCuda && num_gated_ < kLoadingCalls) {
    ++num_gated_;
    gate.emplace();
  }
  try {
    return body();
  } catch (const std::exception& error) {
    return Unavailable(what, ": ", FirstLine(error));
  }
}

Result<MetricList> TorchTrainer::Step(std::span<const TrainSequence> sequences) {
  return Guarded<MetricList>("training step", [&]() -> Result<MetricList> {
    PACE_ASSIGN_OR_RETURN(Minibatch batch, MakeBatch(sequences));
    MetricList metrics;
    double next_kl = kl_coefficient_;
    PACE_RETURN_IF_ERROR(Prepare(batch, metrics, next_kl));
    const UpdateRules rules{
        .loss = *parts_.loss,
        .reduction = options_.reduction.value_or(parts_.loss->paper_reduction()),
        .ess = options_.ess.has_value() ? &*options_.ess : nullptr,
        .opob = options_.opob.has_value() ? &*options_.opob : nullptr,
        .skip_equal_rewards = options_.skip_equal_rewards};
    for (const std::vector<size_t>& part :
         SplitByGroups(sequences, options_.num_minibatches, options_.shuffle_seed)) {
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
  });
}

Result<MetricList> TorchTrainer::Imitate(std::span<const TrainSequence> sequences) {
  return Guarded<MetricList>("training step", [&]() -> Result<MetricList> {
    PACE_ASSIGN_OR_RETURN(Minibatch batch, MakeBatch(sequences));
    batch.advantages.assign(batch.mask.size(), 1.0);
    return Update(batch, {.loss = *parts_.imitation});
  });
}

Result<double> TorchTrainer::MeanLogProb(std::span<const TrainSequence> sequences) {
  return Guarded<double>("scoring", [&]() -> Result<double> {
    PACE_ASSIGN_OR_RETURN(Minibatch batch, MakeBatch(sequences));
    std::vector<double> logprobs;
    PACE_RETURN_IF_ERROR(ScoreTokens(replicas_, batch, &logprobs, nullptr));
    MeanOf mean;
    for (size_t token = 0; token < logprobs.size(); ++token) {
      if (batch.mask[token] != 0) mean.Add(logprobs[token]);
    }
    return mean.value();
  });
}

// Weights, moments and the value head, as copies.

WeightSet TorchTrainer::HostWeights(const WeightSet& live) const {
  // One block for all tensors.
  size_t total = 0;
  for (const auto& [name, view] : live.views()) total += view.bytes.size();
  auto bytes = std::make_shared<std::vector<std::byte>>(total);
  TensorViews views;
  size_t at = 0;
  for (const auto& [name, view] : live.views()) {
    const std::span<std::byte> slot(bytes->data() + at, view.bytes.size());
    std::copy(view.bytes.begin(), view.bytes.end(), slot.begin());
    views.emplace(name, TensorView{.dtype = view.dtype, .shape = view.shape, .bytes = slot});
    at += view.bytes.size();
  }
  return WeightSet::Create(network().config(), std::move(views), std::move(bytes)).value();
}

Result<WeightSet> TorchTrainer::Snapshot() const {
  if (options_.device != DeviceKind::kCuda || !has_whole_weights()) return HostSnapshot();
  return network().DeviceWeights(options_.compute_in_bf16 ? Dtype::kBF16 : Dtype::kF32);
}

Result<WeightSet> TorchTrainer::GatherWeights(bool keep) const {
  if (has_whole_weights()) return keep ? HostWeights(network().Weights()) : WeightSet();
  auto tensors = std::make_shared<NamedTensors>();
  PACE_RETURN_IF_ERROR(shards_->Gather(shards_->own(), "", HostCopies(keep, "", *tensors)));
  if (!keep) return WeightSet();
  TensorViews views = ViewsOf(*tensors);
  return WeightSet::Create(network().config(), std::move(views), std::move(tensors));
}

NamedTensors TorchTrainer::Tensors() const {
  NamedTensors tensors = optimizer_.State();
  if (head_.has_value()) tensors.merge(head_->State());
  return tensors;
}

Result<TrainerState> TorchTrainer::GatherState(bool keep) const {
  TrainerState state;
  PACE_ASSIGN_OR_RETURN(state.weights, GatherWeights(keep));
  auto tensors = std::make_shared<NamedTensors>();
  for (const char* suffix : {".m", ".v"}) {
    PACE_RETURN_IF_ERROR(
        shards_->Gather(optimizer_.State(), suffix, HostCopies(keep, suffix, *tensors)));
  }
  if (!keep) return state;
  if (head_.has_value()) {
    const auto take = HostCopies(keep, "", *tensors);
    for (const auto& [name, tensor] : head_->State()) take(name, tensor);
  }
  state.tensors = ViewsOf(*tensors);
  state.memory = std::move(tensors);
  state.num_updates = optimizer_.num_updates();
  state.kl_coefficient = kl_coefficient_;
  return state;
}

// All that the state must hold, by name; moments in the shape of their parameter.
Result<NamedTensors> TorchTrainer::ReadState(const TrainerState& state) const {
  NamedTensors tensors;
  for (const auto& [name, view] : state.tensors) {
    const at::Tensor tensor = at::empty(view.shape, at::kFloat);
    if (view.dtype != Dtype::kF32 || view.bytes.size() != 4 * static_cast<size_t>(tensor.numel())) {
      return DataLoss(name, ": must be float32");
    }
    ReadFloats(view, FloatsOf(tensor));
    tensors.emplace(name, tensor);
  }
  for (const ShardUnit& unit : shards_->layout().units) {
    for (const ShardSlot& slot : unit.slots) {
      for (const char* suffix : {".m", ".v"}) {
        const auto found = tensors.find(slot.name + suffix);
        if (found == tensors.end()) {
          return NotFound("optimizer state: ", slot.name, suffix, " is missing");
        }
        if (found->second.sizes() != slot.shape) {
          return InvalidArgument("optimizer state: ", slot.name, suffix,
                                 " has another shape than its parameter");
        }
      }
    }
  }
  return tensors;
}

// What rank 0 has, on every rank.
Status TorchTrainer::ShareTensor(at::Tensor& tensor, const std::vector<int64_t>& shape) const {
  if (!has_ranks()) return Status::Ok();
  if (!tensor.defined()) tensor = at::empty(shape, at::kFloat);
  tensor = tensor.contiguous();
  return ranks_->Broadcast(tensor, 0);
}

Status TorchTrainer::Restore(const TrainerState& state) {
  const bool leads = ranks_ == nullptr || ranks_->rank() == 0;
  Result<NamedTensors> read = leads ? ReadState(state) : NamedTensors();
  Status status = read.status();
  if (read.ok() && leads && head_.has_value()) status = head_->Restore(*read, state.num_updates);
  RestoreHeader header{
      .status = status, .num_updates = state.num_updates, .kl_coefficient = state.kl_coefficient};
  if (has_ranks()) {
    std::string bytes = EncodeHeader(header);
    PACE_RETURN_IF_ERROR(ranks_->BroadcastBytes(bytes, 0));
    PACE_ASSIGN_OR_RETURN(header, DecodeHeader(bytes));
  }
  PACE_RETURN_IF_ERROR(header.status);
  const at::NoGradGuard no_grad;
  NamedTensors own;
  for (const ShardUnit& unit : shards_->layout().units) {
    for (const ShardSlot& slot : unit.slots) {
      for (const char* suffix : {".m", ".v"}) {
        at::Tensor whole = leads ? read->at(slot.name + suffix) : at::Tensor();
        PACE_RETURN_IF_ERROR(ShareTensor(whole, slot.shape));
        const at::Tensor slice = shards_->SliceOf(slot.name, whole);
        if (slice.defined()) own.emplace(slot.name + suffix, slice.clone());
        if (leads) read->erase(slot.name + suffix);
      }
      at::Tensor whole = leads ? at::tensor(state.weights.Floats(slot.name)) : at::Tensor();
      PACE_RETURN_IF_ERROR(ShareTensor(whole, {slot.count}));
      shards_->SetWeight(slot.name, whole);
    }
  }
  PACE_RETURN_IF_ERROR(optimizer_.Restore(own, header.num_updates));
  if (head_.has_value()) {
    NamedTensors of_head;
    for (const auto& [name, tensor] : head_->State()) {
      at::Tensor shared = tensor.to(at::kCPU, at::kFloat);
      PACE_RETURN_IF_ERROR(ShareTensor(shared, tensor.sizes().vec()));
      of_head.emplace(name, shared);
    }
    PACE_RETURN_IF_ERROR(head_->Restore(of_head, header.num_updates));
  }
  kl_coefficient_ = header.kl_coefficient;
  return Status::Ok();
}

Result<std::unique_ptr<TorchTrainer>> TorchTrainer::Create(TrainingNetwork network,
                                                           const TrainerOptions& options,
                                                           std::optional<TrainingNetwork> initial,
                                                           Communicator* ranks) {
  PACE_RETURN_IF_ERROR(options.Validate());
  if (ranks != nullptr && ranks->size() > 1 && options.shard >= ShardMode::kGradients &&
      options.num_threads > 1) {
    return InvalidArgument("train.threads = ", options.num_threads,
                           ": with train.shard = gradients or full a rank has one thread (start "
                           "more ranks instead)");
  }
  if (options.kl.active() && !initial.has_value()) {
    return InvalidArgument("kl: there is no initial policy to measure the distance from");
  }
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<AdvantageEstimator> advantage,
                        MakeAdvantageEstimator(options.advantage));
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<PolicyLoss> loss, MakePolicyLoss(options.loss));
  // -log pi per token: REINFORCE with an advantage of 1.
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<PolicyLoss> imitation, MakePolicyLoss("reinforce"));
  return std::unique_ptr<TorchTrainer>(new TorchTrainer(std::move(network), options,
                                                        {.advantage = std::move(advantage),
                                                         .loss = std::move(loss),
                                                         .imitation = std::move(imitation)},
                                                        std::move(initial), ranks));
}

}  // namespace pace
