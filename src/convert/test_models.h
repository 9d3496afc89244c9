// Small models that the tests of this folder convert.
#ifndef PACE_CONVERT_TEST_MODELS_H_
#define PACE_CONVERT_TEST_MODELS_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convert/model_source.h"
#include "model/weight_set.h"

namespace pace {

// An empty folder of the running test's own.
inline std::filesystem::path ScratchFolder() {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder = std::filesystem::path(PACE_BINARY_DIR) / "cli_scratch" /
                                       test->test_suite_name() / test->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

inline std::string FileText(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Heads of 8 that do not split the hidden size, but for Llama.
inline ModelConfig TinyConfig(Architecture architecture) {
  ModelConfig config;
  config.architecture = architecture;
  config.vocab_size = 40;
  config.hidden_size = 32;
  config.intermediate_size = 48;
  config.num_layers = 2;
  config.num_heads = architecture == Architecture::kLlama ? 4 : 6;
  config.num_kv_heads = 2;
  config.head_dim = 8;
  config.max_positions = 64;
  config.norm_epsilon = 1e-5;
  config.qkv_bias = architecture == Architecture::kQwen2;
  config.qk_norm = architecture == Architecture::kQwen3;
  config.tied = architecture != Architecture::kQwen2;
  config.bos = 1;
  config.eos = {2};
  return config;
}

// Random weights of a config.
inline ModelSource TinySource(const ModelConfig& config) {
  const auto weights = std::make_shared<const WeightSet>(RandomWeights(config, 7));
  const std::vector<Parameter> parameters = ParametersOf(config);
  ModelSource source{.config = config,
                     .texts = {},
                     .num_tensors = static_cast<int64_t>(parameters.size()),
                     .tensor = {}};
  source.tensor = [weights, parameters](int64_t index) -> Result<FloatTensor> {
    const Parameter& parameter = parameters[static_cast<size_t>(index)];
    return FloatTensor{parameter.name, parameter.shape, weights->Floats(parameter.name)};
  };
  return source;
}

// The tensors of a source, by name.
inline std::map<std::string, FloatTensor> AllTensors(const ModelSource& source) {
  std::map<std::string, FloatTensor> tensors;
  for (int64_t i = 0; i < source.num_tensors; ++i) {
    Result<FloatTensor> tensor = source.tensor(i);
    EXPECT_TRUE(tensor.ok()) << tensor.status().message();
    if (tensor.ok()) tensors.emplace(tensor->name, std::move(tensor).value());
  }
  return tensors;
}

inline void ExpectSameTensors(const ModelSource& a, const ModelSource& b) {
  const auto left = AllTensors(a);
  const auto right = AllTensors(b);
  ASSERT_EQ(left.size(), right.size());
  for (const auto& [name, tensor] : left) {
    ASSERT_TRUE(right.contains(name)) << name;
    EXPECT_EQ(tensor.shape, right.at(name).shape) << name;
    EXPECT_EQ(tensor.values, right.at(name).values) << name;
  }
}

}  // namespace pace

#endif  // PACE_CONVERT_TEST_MODELS_H_
