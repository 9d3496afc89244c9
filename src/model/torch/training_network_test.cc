#include "model/torch/training_network.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/reference_forward.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

constexpr double kScale = 0.25;

// Two sequences and one of a single token.
const PackedTokens kBatch = {.tokens = {1, 7, 3, 50, 7, 22, 9, 9, 9, 30, 0, 52},
                             .lengths = {7, 1, 4}};

std::vector<std::vector<TokenId>> Sequences(const PackedTokens& batch) {
  std::vector<std::vector<TokenId>> all;
  auto at = batch.tokens.begin();
  for (const int64_t length : batch.lengths) {
    all.emplace_back(at, at + length);
    at += length;
  }
  return all;
}

TrainingNetwork Built(const ModelConfig& config, const WeightSet& weights,
                      at::ScalarType dtype = at::kFloat) {
  at::set_num_threads(1);  // too small to share
  Result<TrainingNetwork> network =
      TrainingNetwork::Create(config, weights, {.device = at::kCPU, .dtype = dtype});
  EXPECT_TRUE(network.ok()) << network.status().message();
  return std::move(*network);
}

at::Tensor LogitsOf(const TrainingNetwork& network, const PackedTokens& batch) {
  return network.Logits(network.Hidden(batch));
}

// By position over all sequences of the batch.
at::Tensor ReferenceLogits(const ModelConfig& config, const WeightSet& weights,
                           const PackedTokens& batch) {
  std::vector<at::Tensor> rows;
  for (const std::vector<TokenId>& tokens : Sequences(batch)) {
    for (const std::vector<double>& row : ReferenceForward(config, weights, tokens).logits) {
      rows.push_back(at::tensor(row, at::kDouble));
    }
  }
  return at::stack(rows);
}

double LargestDifference(const at::Tensor& left, const at::Tensor& right) {
  return (left.to(at::kDouble) - right.to(at::kDouble)).abs().max().item<double>();
}

// A loss of all logits whose gradient does not vanish anywhere.
at::Tensor Loss(const at::Tensor& logits_TV) {
  const at::Tensor logprobs = at::log_softmax(logits_TV, -1);
  const at::Tensor weights =
      at::arange(logits_TV.numel(), at::kDouble).sin().view_as(logits_TV).to(logits_TV);
  return (logprobs * weights).sum();
}

TEST(TrainingNetworkTest, AgreesWithTheReferenceOnPackedSequences) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 5, kScale);
    const at::Tensor expected = ReferenceLogits(tiny.config, weights, kBatch);
    const TrainingNetwork network = Built(tiny.config, weights);
    EXPECT_LT(LargestDifference(LogitsOf(network, kBatch), expected), 2e-5) << tiny.name;
    const TrainingNetwork exact = Built(tiny.config, weights, at::kDouble);
    EXPECT_LT(LargestDifference(LogitsOf(exact, kBatch), expected), 2e-6) << tiny.name;
  }
}

TEST(TrainingNetworkTest, Bfloat16StaysNearFloat32) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 5, kScale);
    const at::Tensor expected = ReferenceLogits(tiny.config, weights, kBatch);
    const TrainingNetwork network = Built(tiny.config, weights, at::kBFloat16);
    const at::Tensor logits = LogitsOf(network, kBatch);
    EXPECT_EQ(logits.scalar_type(), at::kBFloat16);
    const at::Tensor error = (logits.to(at::kDouble) - expected).abs();
    EXPECT_LT(error.mean().item<double>(), 0.02 * expected.abs().max().item<double>()) << tiny.name;
  }
}

TEST(TrainingNetworkTest, PackingDoesNotChangeLogitsOrGradients) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 6, kScale);
    const TrainingNetwork packed = Built(tiny.config, weights, at::kDouble);
    const TrainingNetwork separate = Built(tiny.config, weights, at::kDouble);
    Loss(LogitsOf(packed, kBatch)).backward();
    std::vector<at::Tensor> logits;
    for (const std::vector<TokenId>& tokens : Sequences(kBatch)) {
      logits.push_back(
          LogitsOf(separate, {.tokens = tokens, .lengths = {static_cast<int64_t>(tokens.size())}}));
    }
    Loss(at::cat(logits)).backward();
    for (const auto& [name, parameter] : packed.parameters()) {
      const at::Tensor& other = separate.parameters().at(name).grad();
      ASSERT_EQ(parameter.grad().defined(), other.defined()) << tiny.name << name;
      if (!other.defined()) continue;
      EXPECT_LT(LargestDifference(parameter.grad(), other), 1e-11) << tiny.name << name;
    }
  }
}

TEST(TrainingNetworkTest, GradientsAreThoseOfFiniteDifferences) {
  constexpr double kStep = 1e-5;
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 7, kScale);
    const TrainingNetwork network = Built(tiny.config, weights, at::kDouble);
    Loss(LogitsOf(network, kBatch)).backward();
    const at::NoGradGuard no_grad;
    int64_t index = 0;
    for (const auto& [name, parameter] : network.parameters()) {
      const at::Tensor flat = parameter.detach().view({-1});
      index = (index * 31 + 17) % flat.numel();
      const auto at_offset = [&](double offset) {
        flat[index] += offset;
        const double loss = Loss(LogitsOf(network, kBatch)).item<double>();
        flat[index] -= offset;
        return loss;
      };
      const double slope = (at_offset(kStep) - at_offset(-kStep)) / (2 * kStep);
      const double grad =
          parameter.grad().defined() ? parameter.grad().view({-1})[index].item<double>() : 0.0;
      EXPECT_NEAR(grad, slope, 1e-6 * (1 + std::abs(slope))) << tiny.name << ": " << name;
    }
  }
}

TEST(TrainingNetworkTest, RecordsWhatTheRoutersChose) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 8, kScale);
    const std::vector<TokenId> tokens = {4, 8, 15, 16, 23, 42};
    std::vector<RoutingRecord> records;
    Built(tiny.config, weights).Hidden({.tokens = tokens, .lengths = {6}}, &records);
    const ReferenceResult expected = ReferenceForward(tiny.config, weights, tokens);
    ASSERT_EQ(records.size() * tokens.size(), expected.routing.size()) << tiny.name;
    for (const ReferenceRouting& one : expected.routing) {
      const auto record = std::ranges::find(records, one.layer, &RoutingRecord::layer);
      ASSERT_NE(record, records.end());
      EXPECT_TRUE(at::equal(record->experts_TK[one.position], at::tensor(one.experts, at::kLong)));
      EXPECT_LT(
          LargestDifference(record->logits_TE[one.position], at::tensor(one.logits, at::kDouble)),
          1e-5);
      EXPECT_LT(
          LargestDifference(record->weights_TK[one.position], at::tensor(one.weights, at::kDouble)),
          1e-5);
    }
  }
}

TEST(TrainingNetworkTest, ThePaddingRowIsNotTrainedThroughTheEmbedding) {
  ModelConfig config = TinyModel(Architecture::kQwen3);
  config.pad = 7;
  const TrainingNetwork network = Built(config, RandomWeights(config, 9, kScale));
  Loss(LogitsOf(network, kBatch)).backward();
  const at::Tensor& grad = network.parameters().at("model.embed_tokens.weight").grad();
  EXPECT_EQ(grad[7].abs().max().item<float>(), 0);
  EXPECT_GT(grad[3].abs().max().item<float>(), 0);
}

TEST(TrainingNetworkTest, WeightsAreViewsThatOutliveTheNetwork) {
  const ModelConfig config = TinyModel(Architecture::kQwen3Moe);
  const WeightSet weights = RandomWeights(config, 10);
  WeightSet views;
  {
    const TrainingNetwork network = Built(config, weights);
    views = network.Weights();
    const at::NoGradGuard no_grad;
    at::Tensor norm = network.parameters().at("model.norm.weight");
    norm.fill_(0.5);
  }
  for (const float value : views.Floats("model.norm.weight")) EXPECT_EQ(value, 0.5F);
  const char* const other = "model.layers.1.mlp.experts.3.down_proj.weight";
  EXPECT_EQ(views.Floats(other), weights.Floats(other));
}

TEST(TrainingNetworkTest, WeightsOfABfloat16NetworkAreFloat32) {
  const ModelConfig config = TinyModel(Architecture::kQwen2);
  const WeightSet views = Built(config, RandomWeights(config, 10), at::kBFloat16).Weights();
  EXPECT_EQ(views.Get("model.norm.weight").dtype, Dtype::kF32);
}

}  // namespace
}  // namespace pace
