#include "cluster/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cluster/model_shape.h"

namespace pace {
namespace {

ModelOptions Qwen8b() {
  ModelOptions model;
  model.hidden = 4096;
  model.ffn = 12288;
  model.tied_embeddings = false;
  return model;
}

ModelOptions Qwen30bA3b() {
  ModelOptions model;
  model.num_layers = 48;
  model.hidden = 2048;
  model.num_kv_heads = 4;
  model.tied_embeddings = false;
  model.num_experts = 128;
  model.experts_per_token = 8;
  model.expert_ffn = 768;
  return model;
}

TEST(ModelShapeTest, CountsParametersAsTheModelCardsDo) {
  EXPECT_EQ(NumParameters(ModelOptions()), 4022468096.0);  // Qwen3-4B
  EXPECT_NEAR(NumParameters(Qwen8b()), 8.19e9, 0.005e9);
  EXPECT_NEAR(NumParameters(Qwen30bA3b()), 30.53e9, 0.01e9);
  // Active parameters are quoted with the input embedding.
  const double embedding = 151936.0 * 2048;
  EXPECT_NEAR(NumActiveParameters(Qwen30bA3b()) + embedding, 3.35e9, 0.01e9);
}

TEST(ModelShapeTest, KvOfQwen4bIs144KibPerToken) {
  EXPECT_EQ(KvBytesPerToken(ModelOptions()), 144.0 * 1024);
  EXPECT_EQ(KvBytesPerToken(Qwen30bA3b()), 96.0 * 1024);
}

TEST(ModelShapeTest, ABatchReadsTheExpertsItHits) {
  const ModelOptions model = Qwen30bA3b();
  EXPECT_NEAR(NumParametersRead(model, 1), NumActiveParameters(model), 1.0);
  const double all = NumParameters(model) - 151936.0 * 2048;
  EXPECT_NEAR(NumParametersRead(model, 1000), all, 1e-6 * all);
  // Sixteen tokens of 8 in 128 hit 128 (1 - (15/16)^16) = 82.4 experts a layer.
  const double expert = 3.0 * 2048 * 768 * 48;
  EXPECT_NEAR((NumParametersRead(model, 16) - NumParametersRead(model, 1)) / expert,
              128 * (1 - std::pow(15.0 / 16, 16)) - 8, 1e-6);
}

TEST(CostModelTest, OneResponseDecodesAtTheBandwidthFloor) {
  GpuOptions gpu;
  gpu.launch_us_per_layer = 0;
  gpu.decode_bandwidth_share = 1;
  gpu.memory_tb_per_s = 4.3;
  const DecodeCurve curve = RooflineCurve(ModelOptions(), gpu, ClusterOptions(), 1);
  // 8.04 GB at 4.3 TB/s: about 535 tokens a second.
  EXPECT_NEAR(1 / curve.Iteration(0), 534.5, 0.5);
}

TEST(CostModelTest, ALargeBatchIsBoundByItsKv) {
  GpuOptions gpu;
  gpu.launch_us_per_layer = 0;
  gpu.decode_bandwidth_share = 1;
  gpu.memory_tb_per_s = 4.3;
  const DecodeCurve curve = RooflineCurve(ModelOptions(), gpu, ClusterOptions(), 256);
  // (8.045e9 + 256 * 2048 * 147456) bytes / 4.3e12 = 19.85 ms.
  EXPECT_NEAR(256 / curve.Iteration(int64_t{256} * 2048), 12897, 10);
}

TEST(CostModelTest, ShortContextsAtLargeBatchAreBoundByOperations) {
  ClusterOptions cluster;
  GpuOptions gpu;
  gpu.launch_us_per_layer = 0;
  gpu.peak_tflops = 100;
  const DecodeCurve curve = RooflineCurve(ModelOptions(), gpu, cluster, 256);
  const double operations = 2 * NumActiveParameters(ModelOptions()) * 256;
  EXPECT_NEAR(curve.Iteration(0), operations / (100e12 * 0.5), 1e-9);
  // With enough context the KV takes over.
  EXPECT_GT(curve.Iteration(2000000), 2000000 * 147456.0 / (3.35e12 * 0.7));
}

TEST(CostModelTest, TrainingWithRecomputationTakes32GflopPerToken) {
  GpuOptions gpu;
  gpu.peak_tflops = 790;
  ClusterOptions cluster;
  cluster.trainer_gpus = 1;
  cluster.train_overhead_s = 0;
  const auto costs = CostModel::Create(ModelOptions(), gpu, cluster);
  ASSERT_TRUE(costs.ok());
  const double seconds = costs->TrainSeconds({1e6, 0}, 1);
  const double optimizer = 30 * 4022468096.0 / (3.35e12 * 0.7);
  EXPECT_NEAR(1e6 / (seconds - optimizer), 9820, 20);
}

TEST(CostModelTest, ColocatedTrainingHasEveryGpu) {
  ClusterOptions cluster;
  cluster.train_overhead_s = 0;
  const auto apart = CostModel::Create(ModelOptions(), GpuOptions(), cluster);
  cluster.layout = Layout::kColocated;
  const auto together = CostModel::Create(ModelOptions(), GpuOptions(), cluster);
  EXPECT_NEAR(apart->TrainSeconds({1e6, 1e9}, 1) / together->TrainSeconds({1e6, 1e9}, 1), 3, 1e-9);
}

TEST(CostModelTest, RescoringWithRebuiltKvCostsTheProjectionAlone) {
  ClusterOptions cluster;
  const auto rebuilt = CostModel::Create(ModelOptions(), GpuOptions(), cluster);
  cluster.kv_at_sync = KvAtSync::kKeep;
  const auto kept = CostModel::Create(ModelOptions(), GpuOptions(), cluster);
  const PassSize pass = PassSize::Extending(0, 1200);
  const double projection = 2 * 151936.0 * 2560 * 1000 / (989e12 * 0.5);
  EXPECT_NEAR(rebuilt->RescoreSeconds(1000, pass), projection, 1e-12);
  EXPECT_NEAR(kept->RescoreSeconds(1000, pass), projection + kept->PrefillSeconds(pass), 1e-12);
}

TEST(CostModelTest, SyncTimeIsBytesOverTheSlowerOfRateAndLink) {
  ClusterOptions cluster;
  cluster.sync_overhead_s = 0.25;
  const double bytes = 2 * 4022468096.0;
  EXPECT_NEAR(CostModel::Create(ModelOptions(), GpuOptions(), cluster)->SyncSeconds(),
              0.25 + bytes / 10e9, 1e-9);
  cluster.sync_gb_per_s = 1000;
  EXPECT_NEAR(CostModel::Create(ModelOptions(), GpuOptions(), cluster)->SyncSeconds(),
              0.25 + bytes / 450e9, 1e-9);
  cluster.rollout_gpus = 12;  // a second node
  EXPECT_NEAR(CostModel::Create(ModelOptions(), GpuOptions(), cluster)->SyncSeconds(),
              0.25 + bytes / 50e9, 1e-9);
}

TEST(CostModelTest, KvTakesWhatTheWeightsLeave) {
  const auto costs = CostModel::Create(ModelOptions(), GpuOptions(), ClusterOptions());
  const double bytes = 72.0 * 1073741824 - 2 * 4022468096.0;
  EXPECT_EQ(costs->KvCapacity(), static_cast<int64_t>(bytes / 147456));
  GpuOptions small;
  small.memory_gib = 8;
  const auto refused = CostModel::Create(ModelOptions(), small, ClusterOptions());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("gpu.memory_gib = 8"), std::string::npos);
}

TEST(CostModelTest, ConstantCostsLeaveOnlyTokensAndTheFixedTimes) {
  ClusterOptions cluster;
  cluster.decode_costs = DecodeCosts::kConstant;
  cluster.seconds_per_token = 0.5;
  cluster.sync_overhead_s = 0;
  cluster.train_seconds = 7;
  const auto costs = CostModel::Create(ModelOptions(), GpuOptions(), cluster);
  EXPECT_EQ(costs->Decode(17).Span(1000000, 10), 5.0);
  EXPECT_EQ(costs->PrefillSeconds({1000, 1000}), 0);
  EXPECT_EQ(costs->RescoreSeconds(1000, {1000, 1000}), 0);
  EXPECT_EQ(costs->SyncSeconds(), 0);
  EXPECT_EQ(costs->TrainSeconds({1e6, 1e9}, 4), 7);
}

TEST(CostModelTest, AScaledTokenCostsAsManyTokens) {
  const GpuOptions gpu;
  ClusterOptions plain;
  plain.slots = 32;
  ClusterOptions scaled = plain;
  scaled.token_scale = 100;
  const CostModel one = CostModel::Create(ModelOptions(), gpu, plain).value();
  const CostModel hundred = CostModel::Create(ModelOptions(), gpu, scaled).value();
  EXPECT_EQ(hundred.KvCapacity(), one.KvCapacity() / 100);
  for (const int64_t batch : {1, 7, 32}) {
    // The same hundred iterations, but for the tokens that they add themselves.
    const double unscaled = 100 * one.Decode(batch).Iteration(50 * 100 * batch);
    EXPECT_NEAR(hundred.Decode(batch).Iteration(50 * batch), unscaled, 1e-9 * unscaled);
  }
  const PassSize pass = PassSize::Extending(0, 40);
  const PassSize long_pass = PassSize::Extending(0, 4000);
  EXPECT_NEAR(hundred.TrainSeconds(pass, 1), one.TrainSeconds(long_pass, 1), 1e-9);
  EXPECT_NEAR(hundred.PrefillSeconds(pass), one.PrefillSeconds(long_pass), 1e-9);
  EXPECT_NEAR(hundred.RescoreSeconds(40, pass), one.RescoreSeconds(4000, long_pass), 1e-12);
}

}  // namespace
}  // namespace pace
