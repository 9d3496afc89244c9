#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "model/weight_set.h"

namespace pace {
namespace {

ModelConfig SmallConfig() {
  ModelConfig config;
  config.architecture = Architecture::kQwen3;
  config.vocab_size = 8;
  config.hidden_size = 8;
  config.intermediate_size = 8;
  config.num_layers = 1;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 4;
  config.max_positions = 16;
  config.tied = true;
  config.qk_norm = true;
  return config;
}

// The weights with one element of one tensor replaced.
Status WithElement(const std::string& name, size_t index, float value, Dtype dtype) {
  const ModelConfig config = SmallConfig();
  const WeightSet good = RandomWeights(config, 1);
  auto owner = std::make_shared<std::vector<std::vector<std::byte>>>();
  owner->reserve(good.views().size());
  TensorViews views;
  for (const auto& [key, view] : good.views()) {
    std::vector<float> floats = good.Floats(key);
    if (key == name) floats.at(index) = value;
    const size_t width = dtype == Dtype::kF32 ? 4 : 2;
    std::vector<std::byte> bytes(floats.size() * width);
    for (size_t i = 0; i < floats.size(); ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(floats[i]);
      const auto half = static_cast<uint16_t>(bits >> 16);  // as bfloat16
      std::memcpy(bytes.data() + i * width, width == 4 ? static_cast<const void*>(&bits) : &half,
                  width);
    }
    owner->push_back(std::move(bytes));
    views[key] = {dtype, view.shape, owner->back()};
  }
  const Result<WeightSet> weights = WeightSet::Create(config, std::move(views), owner);
  EXPECT_TRUE(weights.ok()) << weights.status().message();
  return CheckFinite(*weights);
}

TEST(FiniteWeightsTest, FiniteWeightsPass) {
  EXPECT_TRUE(CheckFinite(RandomWeights(SmallConfig(), 1)).ok());
  EXPECT_TRUE(
      WithElement("model.norm.weight", 0, std::numeric_limits<float>::max(), Dtype::kF32).ok());
}

TEST(FiniteWeightsTest, TheTensorWithNanOrInfinityIsNamed) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
          -std::numeric_limits<float>::infinity()}) {
      EXPECT_EQ(WithElement("model.norm.weight", 7, value, dtype).message(),
                "model.norm.weight: 1 of 8 elements are NaN or infinite (the file is damaged, or "
                "the training that wrote it diverged)");
    }
  }
}

}  // namespace
}  // namespace pace
