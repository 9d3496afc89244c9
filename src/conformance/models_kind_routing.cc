#include "conformance/models_kind_routing.h"

#include <algorithm>
#include <utility>

#include "core/concat.h"

namespace pace::models {
namespace {

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

}  // namespace

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

}  // namespace pace::models
