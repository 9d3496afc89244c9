// `models`: the training network, in every field of a case.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "conformance/models_kind_checks.h"
#include "core/concat.h"
#include "model/torch/training_network.h"

namespace pace::models {
namespace {

std::vector<double> Doubles(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kDouble).reshape({-1}).contiguous();
  const double* const begin = flat.data_ptr<double>();
  return {begin, begin + flat.numel()};
}

std::vector<int64_t> Integers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kCPU, at::kLong).reshape({-1}).contiguous();
  const int64_t* const begin = flat.data_ptr<int64_t>();
  return {begin, begin + flat.numel()};
}

constexpr Tolerance kExact;

// Rows of numbers, one for each token.
void NearRows(Field& field, const at::Tensor& ours, const Json& expected,
              const Tolerance& tolerance) {
  if (std::cmp_not_equal(ours.size(0), expected.size())) {
    return field.Differs(Concat("ours are ", ours.size(0), " tokens, expected ", expected.size()));
  }
  for (size_t token = 0; token < expected.size(); ++token) {
    const std::vector<double> row = Doubles(ours[static_cast<int64_t>(token)]);
    const auto wanted = expected[token].get<std::vector<double>>();
    if (row.size() != wanted.size()) field.Differs(Concat("token ", token, ": has ", row.size()));
    for (size_t i = 0; i < std::min(row.size(), wanted.size()); ++i) {
      field.Near(Concat("token ", token, ", ", i), row[i], wanted[i], tolerance);
    }
  }
}

// Of every token in every sparse layer.
at::Tensor Probabilities(const std::vector<RoutingRecord>& records) {
  std::vector<at::Tensor> logits;
  for (const RoutingRecord& record : records) logits.push_back(record.logits_TE.detach());
  return at::softmax(at::cat(logits).to(at::kFloat), -1);
}

// Between the least likely expert that was chosen and the likeliest that was not.
double ChoiceMargin(const std::vector<RoutingRecord>& records, const MoeConfig& moe) {
  const int64_t chosen = moe.num_experts_per_token;
  const at::Tensor sorted = std::get<0>(at::sort(Probabilities(records), -1, true));
  if (chosen == sorted.size(1)) return 0;
  return (sorted.select(1, chosen - 1) - sorted.select(1, chosen)).min().item<double>();
}

// Switch Transformer's balance loss over the tokens of all layers, as
// transformers counts it: share of tokens times mean probability, by expert.
double BalanceLoss(const std::vector<RoutingRecord>& records, const MoeConfig& moe) {
  const at::Tensor probabilities = Probabilities(records);
  std::vector<at::Tensor> experts;
  for (const RoutingRecord& record : records) experts.push_back(record.experts_TK);
  const at::Tensor counts = at::bincount(at::cat(experts).reshape({-1}), {}, moe.num_experts);
  const at::Tensor share = counts.to(at::kDouble) / probabilities.size(0);
  return (share * probabilities.mean(0)).sum().item<double>() *
         static_cast<double>(moe.num_experts);
}

void CheckLayer(const std::vector<RoutingRecord>& records, const MoeConfig& moe,
                const std::string& name, const Json& expected, FieldCounts& counts) {
  const auto layer = expected.at("layer").get<int64_t>();
  const std::string where = Concat(name, ": layer ", layer);
  const auto record = std::ranges::find(records, layer, &RoutingRecord::layer);
  for (const auto& [key, value] : expected.items()) {
    if (key == "layer") continue;
    Field field = counts.Begin(where, "router." + key);
    if (record == records.end()) {
      field.Differs("ours is a dense layer");
    } else if (key == "router_logits") {
      NearRows(field, record->logits_TE, value, kLogitTolerance);
    } else if (key == "selected_experts") {
      NearRows(field, record->experts_TK, value, kExact);
    } else if (key == "routing_weights") {
      NearRows(field, record->weights_TK, value, kLogprobTolerance);
    } else if (key == "tokens_per_expert") {
      const at::Tensor experts = record->experts_TK.reshape({-1});
      field.Same(Integers(at::bincount(experts, {}, moe.num_experts)),
                 value.get<std::vector<int64_t>>());
    } else {
      counts.Skip(where, field.name(), "is not a field that is known");
      continue;
    }
    counts.Count(field);
  }
}

// What the routers of sparse layers chose. `expected` is the field `router` of the case.
void CheckRouting(const std::vector<RoutingRecord>& records, const MoeConfig& moe,
                  const std::string& name, const Json& expected, FieldCounts& counts) {
  for (const auto& [key, value] : expected.items()) {
    Field field = counts.Begin(name, "router." + key);
    if (key == "layers") {
      for (const Json& layer : value) CheckLayer(records, moe, name, layer, counts);
      continue;
    }
    if (records.empty()) {
      field.Differs("ours has no sparse layer");
    } else if (key == "min_topk_probability_margin") {
      field.Near("value", ChoiceMargin(records, moe), value, kLogprobTolerance);
    } else if (key == "aux_loss") {
      field.Near("value", BalanceLoss(records, moe), value, kLogprobTolerance);
    } else {
      counts.Skip(name, field.name(), "is not a field that is known");
      continue;
    }
    counts.Count(field);
  }
}

PackedTokens Packed(const std::vector<std::vector<TokenId>>& sequences) {
  PackedTokens batch;
  for (const std::vector<TokenId>& tokens : sequences) {
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
    batch.lengths.push_back(static_cast<int64_t>(tokens.size()));
  }
  return batch;
}

at::Tensor LogitsOf(const TrainingNetwork& network, const PackedTokens& batch) {
  return network.Logits(network.Hidden(batch)).to(at::kFloat);
}

// log p(tokens[t + 1] | tokens[0..t]).
at::Tensor TargetLogprobs(const at::Tensor& logits_TV, const std::vector<TokenId>& tokens) {
  const auto count = static_cast<int64_t>(tokens.size()) - 1;
  const at::Tensor targets = at::tensor(tokens, at::kInt).to(at::kLong).narrow(0, 1, count);
  const at::Tensor logprobs = at::log_softmax(logits_TV.narrow(0, 0, count), -1);
  return logprobs.gather(1, targets.unsqueeze(1)).squeeze(1);
}

class CaseChecks {
 public:
  CaseChecks(const TrainingNetwork& network, const Json& one, std::vector<TokenId> tokens,
             FieldCounts& counts)
      : network_(network),
        case_(one),
        name_(one.at("name")),
        tokens_(std::move(tokens)),
        counts_(counts) {
    hidden_TH_ = network.Hidden(Packed({tokens_}), &routing_);
    logits_TV_ = network.Logits(hidden_TH_).to(at::kFloat);
    if (tokens_.size() > 1) logprobs_ = TargetLogprobs(logits_TV_, tokens_);
  }

  void Run() {
    using Check = void (CaseChecks::*)(Field&, const Json&);
    static const std::map<std::string, Check> kChecks = {
        {"logits", &CaseChecks::Logits},
        {"argmax", &CaseChecks::Argmax},
        {"entropy", &CaseChecks::Entropy},
        {"greedy", &CaseChecks::Greedy},
        {"greedy_min_top2_margin", &CaseChecks::GreedyMargin},
        {"last_hidden_norms", &CaseChecks::HiddenNorms},
        {"log_probs", &CaseChecks::Logprobs},
        {"loss", &CaseChecks::LossValue},
        {"perplexity", &CaseChecks::Perplexity},
        {"weighted_loss", &CaseChecks::WeightedLoss},
        {"grad_global_norm", &CaseChecks::GradGlobalNorm},
        {"grad_norms", &CaseChecks::GradNorms},
        {"grad_entries", &CaseChecks::GradEntries},
        {"weighted_grad_norms", &CaseChecks::WeightedGradNorms}};
    for (const auto& [name, value] : case_.items()) {
      if (name == "name" || name == "input_ids" || name == "logits_positions" ||
          name == "weights") {
        continue;
      }
      const auto check = kChecks.find(name);
      if (name == "router" && network_.config().moe) {
        CheckRouting(routing_, *network_.config().moe, name_, value, counts_);
      } else if (check == kChecks.end()) {
        counts_.Skip(name_, name, "is not a field that is known");
      } else {
        Field field = counts_.Begin(name_, name);
        (this->*check->second)(field, value);
        counts_.Count(field);
      }
    }
  }

 private:
  void Logits(Field& field, const Json& expected) {
    const auto positions = case_.at("logits_positions").get<std::vector<int64_t>>();
    for (size_t i = 0; i < expected.size(); ++i) {
      if (i >= positions.size() || positions[i] < 0 || positions[i] >= logits_TV_.size(0)) {
        field.Differs(Concat("row ", i, " has no position"));
        continue;
      }
      const std::vector<double> ours = Doubles(logits_TV_[positions[i]]);
      const auto row = expected[i].get<std::vector<double>>();
      if (ours.size() != row.size()) field.Differs(Concat("row ", i, " has ", row.size()));
      for (size_t token = 0; token < std::min(ours.size(), row.size()); ++token) {
        field.Near(Concat(positions[i], ", token ", token), ours[token], row[token],
                   kLogitTolerance);
      }
    }
  }

  void Argmax(Field& field, const Json& expected) {
    field.Same(Integers(at::argmax(logits_TV_, -1)), expected.get<std::vector<int64_t>>());
  }

  void Entropy(Field& field, const Json& expected) {
    const at::Tensor logprobs = at::log_softmax(logits_TV_, -1);
    field.Near(Doubles(-(logprobs.exp() * logprobs).sum(-1)), expected.get<std::vector<double>>(),
               kLogprobTolerance);
  }

  void HiddenNorms(Field& field, const Json& expected) {
    field.Near(Doubles(hidden_TH_.norm(2, -1)), expected.get<std::vector<double>>(),
               kLogitTolerance);
  }

  void Greedy(Field& field, const Json& expected) {
    ContinueGreedily(expected.size());
    field.Same(greedy_, expected.get<std::vector<int64_t>>());
  }

  void GreedyMargin(Field& field, const Json& expected) {
    ContinueGreedily(case_.at("greedy").size());
    field.Near("value", greedy_margin_, expected, {.absolute = 2 * kLogitTolerance.absolute});
  }

  void ContinueGreedily(size_t num_tokens) {
    if (greedy_.size() == num_tokens) return;
    const at::NoGradGuard no_grad;
    std::vector<TokenId> tokens = tokens_;
    greedy_.clear();
    while (greedy_.size() < num_tokens) {
      const at::Tensor last = LogitsOf(network_, Packed({tokens}))[-1];
      const auto [values, indices] = at::topk(last, std::min<int64_t>(2, last.size(0)));
      const int64_t next = at::argmax(last).item<int64_t>();
      greedy_margin_ = std::min(greedy_margin_, (values[0] - values[-1]).item<double>());
      greedy_.push_back(next);
      tokens.push_back(static_cast<TokenId>(next));
    }
  }

  void Logprobs(Field& field, const Json& expected) {
    if (!HasTargets(field)) return;
    field.Near(Doubles(logprobs_), expected.get<std::vector<double>>(), kLogprobTolerance);
  }

  void LossValue(Field& field, const Json& expected) {
    if (!HasTargets(field)) return;
    field.Near("value", Loss().item<double>(), expected, kLogprobTolerance);
  }

  void Perplexity(Field& field, const Json& expected) {
    if (!HasTargets(field)) return;
    field.Near("value", std::exp(Loss().item<double>()), expected,
               {.relative = kLogprobTolerance.absolute});
  }

  void WeightedLoss(Field& field, const Json& expected) {
    if (!HasWeights(field)) return;
    field.Near("value", LossByWeights().item<double>(), expected, kLogprobTolerance);
  }

  void GradGlobalNorm(Field& field, const Json& expected) {
    if (!HasTargets(field)) return;
    double squares = 0;
    for (const auto& [name, grad] : Gradients()) {
      const double norm = grad.norm().item<double>();
      squares += norm * norm;
    }
    field.Near("value", std::sqrt(squares), expected, kGradientTolerance);
  }

  void GradNorms(Field& field, const Json& expected) {
    if (HasTargets(field)) Norms(field, Gradients(), expected);
  }

  void WeightedGradNorms(Field& field, const Json& expected) {
    if (HasWeights(field)) Norms(field, Backward(LossByWeights()), expected);
  }

  // An entry may be off by as much as its tensor's typical entry allows.
  void GradEntries(Field& field, const Json& expected) {
    if (!HasTargets(field)) return;
    for (const auto& [name, entries] : expected.items()) {
      const auto grad = Gradients().find(name);
      if (grad == Gradients().end()) {
        field.Differs(Concat(name, ": is not a parameter of ours"));
        continue;
      }
      const std::vector<double> ours = Doubles(grad->second);
      const double typical = grad->second.norm().item<double>() / std::sqrt(ours.size());
      for (const Json& entry : entries) {
        const auto index = entry.at(0).get<size_t>();
        if (index >= ours.size()) {
          field.Differs(Concat(name, "[", index, "]: is not there"));
          continue;
        }
        field.Near(Concat(name, "[", index, "]"), ours[index], entry.at(1),
                   {.absolute = kGradientTolerance.absolute + kGradientTolerance.relative * typical,
                    .relative = kGradientTolerance.relative});
      }
    }
  }

  using Gradient = std::map<std::string, at::Tensor>;

  // An expert that no token chose has no gradient: zero.
  Gradient Backward(const at::Tensor& loss) const {
    for (const auto& [name, parameter] : network_.parameters()) parameter.mutable_grad().reset();
    loss.backward({}, /*retain_graph=*/true);
    Gradient gradient;
    for (const auto& [name, parameter] : network_.parameters()) {
      gradient[name] =
          parameter.grad().defined() ? parameter.grad() : at::zeros_like(parameter.detach());
    }
    return gradient;
  }

  const Gradient& Gradients() {
    if (gradients_.empty()) gradients_ = Backward(Loss());
    return gradients_;
  }

  static void Norms(Field& field, const Gradient& ours, const Json& expected) {
    if (ours.size() != expected.size()) {
      field.Differs(Concat("ours are ", ours.size(), ", expected ", expected.size()));
    }
    for (const auto& [name, norm] : expected.items()) {
      const auto grad = ours.find(name);
      if (grad == ours.end()) {
        field.Differs(Concat(name, ": is not a parameter of ours"));
      } else {
        field.Near(name, grad->second.norm().item<double>(), norm, kGradientTolerance);
      }
    }
  }

  bool HasTargets(Field& field) const {
    if (!logprobs_.defined()) field.Differs("one token has no log-probabilities");
    return logprobs_.defined();
  }
  bool HasWeights(Field& field) const {
    if (!HasTargets(field)) return false;
    const bool fit = case_.contains("weights") && case_.at("weights").size() + 1 == tokens_.size();
    if (!fit) field.Differs("weights must be one for each token but the last");
    return fit;
  }
  at::Tensor Loss() const { return -logprobs_.mean(); }
  at::Tensor LossByWeights() const {
    const auto weights = case_.at("weights").get<std::vector<double>>();
    return -(at::tensor(weights, at::kDouble).to(at::kFloat) * logprobs_).mean();
  }

  const TrainingNetwork& network_;
  const Json& case_;
  std::string name_;
  std::vector<TokenId> tokens_;
  FieldCounts& counts_;
  std::vector<RoutingRecord> routing_;
  at::Tensor hidden_TH_;
  at::Tensor logits_TV_;
  at::Tensor logprobs_;  // undefined for one token
  Gradient gradients_;
  std::vector<int64_t> greedy_;
  double greedy_margin_ = INFINITY;
};

using Sequences = std::vector<std::vector<TokenId>>;

// The peer pads its batches; we pack ours. Either way a sequence must not feel
// the others: in order for "right", in reverse for "left".
void CheckPacking(const ModelFolder& folder, const TrainingNetwork& network,
                  const Sequences& sequences, FieldCounts& counts) {
  const at::NoGradGuard no_grad;
  for (const auto& [side, ignored] : folder.expected.at("padded_batch").items()) {
    Sequences ordered = sequences;
    if (side == "left") std::ranges::reverse(ordered);
    const at::Tensor packed = LogitsOf(network, Packed(ordered));
    std::vector<at::Tensor> alone;
    for (const std::vector<TokenId>& tokens : ordered) {
      alone.push_back(LogitsOf(network, Packed({tokens})));
    }
    Field field = counts.Begin("all cases in one batch", "padded_batch." + side);
    field.Near("largest difference from one sequence alone",
               (packed - at::cat(alone)).abs().max().item<double>(), 0, kLogitTolerance);
    counts.Count(field);
  }
}

Status CheckBfloat16Cases(const ModelFolder& folder, FieldCounts& counts) {
  const at::NoGradGuard no_grad;
  PACE_ASSIGN_OR_RETURN(const TrainingNetwork network,
                        TrainingNetwork::Create(folder.config, folder.weights,
                                                {.device = at::kCPU, .dtype = at::kBFloat16}));
  for (const Json& one : folder.expected.at("bf16_compute")) {
    const Json* const exact = FindCase(folder, one.at("name"));
    if (exact == nullptr) {
      counts.Skip(one.at("name"), "bf16_compute", "there is no case of this name");
      continue;
    }
    PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens, CaseTokens(folder, *exact));
    const at::Tensor logprobs = TargetLogprobs(LogitsOf(network, Packed({tokens})), tokens);
    CheckBfloat16(folder, one, "bf16_compute.log_probs", Doubles(logprobs), counts);
  }
  return Status::Ok();
}

Status CheckAll(const ModelFolder& folder, FieldCounts& counts) {
  PACE_ASSIGN_OR_RETURN(const TrainingNetwork network,
                        TrainingNetwork::Create(folder.config, folder.weights,
                                                {.device = at::kCPU, .dtype = at::kFloat}));
  Sequences sequences;
  for (const Json& one : folder.expected.at("cases")) {
    PACE_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, CaseTokens(folder, one));
    sequences.push_back(std::move(tokens));
    CaseChecks(network, one, sequences.back(), counts).Run();
  }
  if (folder.expected.contains("padded_batch") && !sequences.empty()) {
    CheckPacking(folder, network, sequences, counts);
  }
  if (!folder.expected.contains("bf16_compute")) return Status::Ok();
  return CheckBfloat16Cases(folder, counts);
}

}  // namespace

Status CheckTrainingNetwork(const ModelFolder& folder, FieldCounts& counts) {
  // These networks are too small to share.
  at::set_num_threads(1);
  try {
    return CheckAll(folder, counts);
  } catch (const Json::exception&) {
    throw;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    return Unavailable(folder.path, ": LibTorch failed: ", what.substr(0, what.find('\n')));
  }
}

}  // namespace pace::models
