#include "model/weight_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/test_files.h"
#include "formats/checkpoint.h"
#include "formats/float_encoding.h"
#include "model/model_config_json.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

constexpr int64_t kOneShard = int64_t{1} << 30;

// What is wrong with these views, or nothing.
std::string Defect(const ModelConfig& config, TensorViews views) {
  const Result<WeightSet> set = WeightSet::Create(config, std::move(views), nullptr);
  return set.ok() ? "" : set.status().message();
}

TensorView Floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return {
      .dtype = Dtype::kF32, .shape = std::move(shape), .bytes = std::as_bytes(std::span(values))};
}

TEST(WeightSetTest, ParametersAreAsManyAsTheConfigSays) {
  for (const TinyConfig& tiny : TinyConfigs()) {
    int64_t sum = 0;
    for (const Parameter& parameter : ParametersOf(tiny.config)) {
      int64_t count = 1;
      for (const int64_t size : parameter.shape) count *= size;
      sum += count;
    }
    EXPECT_EQ(sum, tiny.config.num_parameters()) << tiny.name;
  }
}

TEST(WeightSetTest, EveryDefectIsNamedAndCounted) {
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  const WeightSet weights = RandomWeights(config, 1);
  EXPECT_EQ(Defect(config, weights.views()), "");

  TensorViews missing = weights.views();
  missing.erase("model.norm.weight");
  EXPECT_EQ(Defect(config, missing),
            "model.norm.weight: is missing: must be there with shape [24]");
  missing.erase("lm_head.weight");
  EXPECT_EQ(Defect(config, missing),
            "model.norm.weight: is missing: must be there with shape [24] (and 1 more tensors are "
            "wrong)");

  TensorViews extra = weights.views();
  extra["model.layers.0.self_attn.q_proj.bias"] = extra.at("model.norm.weight");
  EXPECT_EQ(Defect(config, extra),
            "model.layers.0.self_attn.q_proj.bias: is not a parameter of this qwen3 config");

  TensorViews misshaped = weights.views();
  misshaped.at("model.layers.1.self_attn.k_norm.weight").shape = {2, 3};
  EXPECT_EQ(Defect(config, misshaped),
            "model.layers.1.self_attn.k_norm.weight: shape is [2, 3]: must be [6] by the config");

  TensorViews mistyped = weights.views();
  mistyped.at("model.norm.weight").dtype = Dtype::kI32;
  EXPECT_EQ(Defect(config, mistyped),
            "model.norm.weight: dtype is I32: must be F32, F16 or BF16 (quantised weights are not "
            "supported)");
}

TEST(WeightSetTest, ATiedModelMayCarryItsHeadAndRotaryTables) {
  ModelConfig config = TinyModel(Architecture::kLlama);
  config.tied = true;
  TensorViews views = RandomWeights(config, 1).views();
  views["lm_head.weight"] = views.at("model.embed_tokens.weight");
  views["model.layers.0.self_attn.rotary_emb.inv_freq"] = views.at("model.norm.weight");
  EXPECT_EQ(Defect(config, views), "");
  views["model.rotary.inv_freq"] = views.at("model.norm.weight");
  EXPECT_NE(Defect(config, views), "");
}

TEST(WeightSetTest, StackedExpertsReadAsSingleOnes) {
  const ModelConfig config = TinyModel(Architecture::kQwen3Moe);
  const WeightSet weights = RandomWeights(config, 1);
  const MoeConfig& moe = *config.moe;
  TensorViews views = weights.views();
  std::vector<float> gate_up;
  std::vector<float> down;
  const std::string experts = "model.layers.1.mlp.experts.";
  for (int64_t expert = 0; expert < moe.num_experts; ++expert) {
    for (const char* const projection : {"gate_proj", "up_proj", "down_proj"}) {
      const std::string name = Concat(experts, expert, ".", projection, ".weight");
      const std::vector<float> values = weights.Floats(name);
      std::vector<float>& stack = std::string_view(projection) == "down_proj" ? down : gate_up;
      stack.insert(stack.end(), values.begin(), values.end());
      views.erase(name);
    }
  }
  views[experts + "gate_up_proj"] =
      Floats({moe.num_experts, 2 * moe.intermediate_size, config.hidden_size}, gate_up);
  views[experts + "down_proj"] =
      Floats({moe.num_experts, config.hidden_size, moe.intermediate_size}, down);
  const Result<WeightSet> split = WeightSet::Create(config, views, nullptr);
  ASSERT_TRUE(split.ok()) << split.status().message();
  for (const Parameter& parameter : ParametersOf(config)) {
    EXPECT_EQ(split->Floats(parameter.name), weights.Floats(parameter.name)) << parameter.name;
  }

  TensorViews misshaped = views;
  misshaped.at(experts + "down_proj").shape = {config.hidden_size, moe.num_experts,
                                               moe.intermediate_size};
  EXPECT_EQ(Defect(config, misshaped),
            "model.layers.1.mlp.experts.down_proj: shape is [24, 5, 16]: must be [5, 24, 16] by "
            "the config");
  TensorViews both = views;
  const std::string one = experts + "0.gate_proj.weight";
  both[one] = weights.Get(one);
  EXPECT_EQ(Defect(config, both),
            one + ": is also part of model.layers.1.mlp.experts.gate_up_proj: must be in one");
}

TEST(WeightSetTest, RandomWeightsAreAFunctionOfTheSeed) {
  const ModelConfig config = TinyModel(Architecture::kLlama);
  const auto floats = [&](uint64_t seed, const char* name) {
    return RandomWeights(config, seed).Floats(name);
  };
  const char* const matrix = "model.layers.0.mlp.up_proj.weight";
  EXPECT_EQ(floats(1, matrix), floats(1, matrix));
  EXPECT_NE(floats(1, matrix), floats(2, matrix));
  double squares = 0;
  const std::vector<float> values = floats(1, matrix);
  for (const float value : values) squares += static_cast<double>(value) * value;
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), 0.02, 0.002);
  for (const float value : floats(1, "model.norm.weight")) EXPECT_NEAR(value, 1, 0.6);
}

TEST(WeightSetTest, AnotherDtypeHasTheRoundedValuesAndSharesWhatItNeedNotRound) {
  const ModelConfig config = TinyConfigs().front().config;
  const WeightSet weights = RandomWeights(config, 3);
  const WeightSet rounded = InDtype(config, weights, Dtype::kBF16);
  EXPECT_EQ(rounded.views().size(), ParametersOf(config).size());
  for (const Parameter& parameter : ParametersOf(config)) {
    std::vector<float> expected = weights.Floats(parameter.name);
    for (float& value : expected) value = BF16ToFloat(FloatToBF16(value));
    EXPECT_EQ(rounded.Get(parameter.name).dtype, Dtype::kBF16);
    EXPECT_EQ(rounded.Floats(parameter.name), expected);
    EXPECT_EQ(InDtype(config, weights, Dtype::kF32).Get(parameter.name).bytes.data(),
              weights.Get(parameter.name).bytes.data());
  }
}

TEST(SaveModelTest, ModelsReadBackTheSameInEveryDtype) {
  const std::filesystem::path scratch = ScratchFolder();
  for (const TinyConfig& tiny : TinyConfigs()) {
    const WeightSet weights = RandomWeights(tiny.config, 3);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kF16, Dtype::kBF16}) {
      const std::string folder = (scratch / tiny.name / std::string(DtypeName(dtype))).string();
      const Status saved = SaveModel(folder, tiny.config, weights, dtype, kOneShard);
      ASSERT_TRUE(saved.ok()) << saved.message();
      const Result<ModelConfig> config = ReadModelConfig(folder);
      ASSERT_TRUE(config.ok()) << config.status().message();
      EXPECT_EQ(config->dtype, dtype);
      const Result<WeightSet> again = WeightSet::Load(*config, folder);
      ASSERT_TRUE(again.ok()) << again.status().message();
      for (const Parameter& parameter : ParametersOf(tiny.config)) {
        ASSERT_EQ(again->Get(parameter.name).dtype, dtype);
        std::vector<float> expected = weights.Floats(parameter.name);
        for (float& value : expected) {
          if (dtype == Dtype::kF16) value = F16ToFloat(FloatToF16(value));
          if (dtype == Dtype::kBF16) value = BF16ToFloat(FloatToBF16(value));
        }
        ASSERT_EQ(again->Floats(parameter.name), expected) << tiny.name << parameter.name;
      }
    }
  }
}

TEST(SaveModelTest, LargeModelsAreSharded) {
  const std::filesystem::path folder = ScratchFolder() / "model";
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  const WeightSet weights = RandomWeights(config, 3);
  ASSERT_TRUE(SaveModel(folder.string(), config, weights, Dtype::kBF16, 4000).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / kSafetensorsFileName));
  EXPECT_TRUE(std::filesystem::exists(folder / kSafetensorsIndexName));
  EXPECT_TRUE(WeightSet::Load(config, folder.string()).ok());
}

TEST(SaveModelTest, AFolderWithWeightsIsLeftAsItIs) {
  const std::filesystem::path folder = ScratchFolder();
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  ASSERT_TRUE(
      SaveModel(folder.string(), config, RandomWeights(config, 3), Dtype::kF32, kOneShard).ok());
  const std::string before = ReadFile(folder / "model.safetensors");
  EXPECT_FALSE(
      SaveModel(folder.string(), config, RandomWeights(config, 4), Dtype::kF32, kOneShard).ok());
  EXPECT_EQ(ReadFile(folder / "model.safetensors"), before);
}

TEST(SaveModelTest, OtherDtypesAndFoldersThatCannotBeMadeAreErrors) {
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  const WeightSet weights = RandomWeights(config, 3);
  EXPECT_FALSE(SaveModel("/dev/null/x", config, weights, Dtype::kF32, kOneShard).ok());
  const std::string folder = (ScratchFolder() / "model").string();
  EXPECT_FALSE(SaveModel(folder, config, weights, Dtype::kI8, kOneShard).ok());
  EXPECT_FALSE(SaveModel(folder, config, weights, Dtype::kF32, 0).ok());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace pace
