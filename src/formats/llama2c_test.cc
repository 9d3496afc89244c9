#include "formats/llama2c.h"

#include <cmath>
#include <iostream>
#include <map>

#include "core/test_data.h"
#include "core/test_files.h"

namespace pace {
namespace {

// dim 4, hidden 3, 2 layers, 2 heads, 1 kv head, vocabulary 5, 6 positions.
std::string SmallModel(int32_t vocab_size) {
  std::string file;
  for (const int32_t field : {4, 3, 2, 2, 1, vocab_size, 6}) file += Raw(field);
  const int embedding = 5 * 4;
  const int per_layer = 4 + 16 + 8 + 8 + 16 + 4 + 12 + 12 + 12;
  const int tables = 6 * 2;
  const int num_values = embedding + 2 * per_layer + 4 + tables + (vocab_size < 0 ? embedding : 0);
  for (int i = 0; i < num_values; ++i) file += Raw(static_cast<float>(i));
  return file;
}

std::map<std::string, FloatTensor> ByName(const Llama2cModel& model) {
  std::map<std::string, FloatTensor> tensors;
  for (const FloatTensor& tensor : model.tensors) tensors[tensor.name] = tensor;
  return tensors;
}

TEST(Llama2cTest, WeightsAreFoundInTheOrderOfTheFile) {
  const std::string file = SmallModel(-5);
  const Result<Llama2cModel> model = ParseLlama2cModel(Bytes(file));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_FALSE(model->config.tied);
  EXPECT_EQ(model->config.head_dim(), 2);
  const auto tensors = ByName(*model);
  EXPECT_EQ(tensors.size(), 1u + 2 * 9 + 1 + 1);
  const auto first = [&](const char* name) { return tensors.at(name).values.at(0); };
  EXPECT_EQ(first("model.embed_tokens.weight"), 0);
  EXPECT_EQ(first("model.layers.0.input_layernorm.weight"), 20);
  EXPECT_EQ(first("model.layers.1.input_layernorm.weight"), 24);
  EXPECT_EQ(first("model.layers.0.self_attn.q_proj.weight"), 28);
  EXPECT_EQ(first("model.layers.1.self_attn.q_proj.weight"), 44);
  EXPECT_EQ(first("model.layers.0.self_attn.k_proj.weight"), 60);
  EXPECT_EQ(first("model.layers.0.self_attn.v_proj.weight"), 76);
  EXPECT_EQ(first("model.layers.0.self_attn.o_proj.weight"), 92);
  EXPECT_EQ(first("model.layers.0.post_attention_layernorm.weight"), 124);
  EXPECT_EQ(first("model.layers.0.mlp.gate_proj.weight"), 132);
  EXPECT_EQ(first("model.layers.0.mlp.down_proj.weight"), 156);
  EXPECT_EQ(first("model.layers.0.mlp.up_proj.weight"), 180);
  EXPECT_EQ(first("model.norm.weight"), 204);
  EXPECT_EQ(first("lm_head.weight"), 220);
  EXPECT_EQ(tensors.at("lm_head.weight").values.back(), 239);
  EXPECT_EQ(tensors.at("model.layers.0.mlp.down_proj.weight").shape, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(tensors.at("model.layers.0.self_attn.k_proj.weight").shape,
            (std::vector<int64_t>{2, 4}));
}

TEST(Llama2cTest, ATiedModelHasNoOutputProjection) {
  const std::string file = SmallModel(5);
  const Result<Llama2cModel> model = ParseLlama2cModel(Bytes(file));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(model->config.tied);
  EXPECT_FALSE(ByName(*model).contains("lm_head.weight"));
}

TEST(Llama2cTest, FilesOfAnotherSizeAreRefused) {
  const std::string file = SmallModel(5);
  for (const size_t size : {size_t{0}, size_t{27}, size_t{28}, file.size() - 4, file.size() - 1}) {
    EXPECT_FALSE(ParseLlama2cModel(Bytes(file).first(size)).ok()) << size;
  }
  EXPECT_FALSE(ParseLlama2cModel(Bytes(file + "1234")).ok());
}

TEST(Llama2cTest, HeadersThatMakeNoSenseAreRefusedByField) {
  const auto error = [](size_t field, int32_t value) {
    std::string file = SmallModel(5);
    file.replace(field * 4, 4, Raw(value));
    return ParseLlama2cModel(Bytes(file)).status().message();
  };
  EXPECT_NE(error(0, 0x616b3432).find("version 0"), std::string::npos);
  EXPECT_NE(error(0, 0).find("dim = 0"), std::string::npos);
  EXPECT_NE(error(2, -1).find("n_layers = -1"), std::string::npos);
  EXPECT_NE(error(3, 4).find("n_heads = 4"), std::string::npos);
  EXPECT_NE(error(4, 3).find("n_kv_heads = 3"), std::string::npos);
  EXPECT_NE(error(5, std::numeric_limits<int32_t>::min()).find("vocab_size"), std::string::npos);
  EXPECT_NE(error(6, std::numeric_limits<int32_t>::max()).find("seq_len"), std::string::npos);
}

TEST(Llama2cTest, VocabulariesReadToTheEndOfTheFile) {
  const std::string file =
      Raw(int32_t{3}) + Raw(0.5f) + Raw(int32_t{3}) + "abc" + Raw(-1.0f) + Raw(int32_t{0});
  const Result<Llama2cVocabulary> vocabulary = ParseLlama2cVocabulary(Bytes(file));
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  ASSERT_EQ(vocabulary->tokens.size(), 2u);
  EXPECT_EQ(vocabulary->tokens[0].bytes, "abc");
  EXPECT_EQ(vocabulary->tokens[1].score, -1.0f);
  for (const size_t size : {0u, 3u, 11u, 14u, 16u, 20u}) {
    EXPECT_FALSE(ParseLlama2cVocabulary(Bytes(file).first(size)).ok()) << size;
  }
  EXPECT_FALSE(ParseLlama2cVocabulary(Bytes(Raw(int32_t{3}) + Raw(0.5f) + Raw(int32_t{-1}))).ok());
}

TEST(Llama2cTest, Stories260KHoldsTheModelItsNameSays) {
  const std::filesystem::path folder = SharedData() / "weights";
  if (!std::filesystem::exists(folder / "stories260K.bin")) {
    GTEST_SKIP() << WithoutData(folder, 1);
  }
  const auto model = ReadLlama2cModel((folder / "stories260K.bin").string());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->config.hidden_size, 64);
  EXPECT_EQ(model->config.num_layers, 5);
  EXPECT_TRUE(model->config.tied);
  size_t num_parameters = 0;
  for (const FloatTensor& tensor : model->tensors) {
    num_parameters += tensor.values.size();
    for (const float value : tensor.values) ASSERT_LT(std::fabs(value), 100.0f) << tensor.name;
  }
  EXPECT_EQ(num_parameters, 260'032u);
  const auto vocabulary = ReadLlama2cVocabulary((folder / "tok512.bin").string());
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  EXPECT_EQ(vocabulary->tokens.size(), static_cast<size_t>(model->config.vocab_size));
}

}  // namespace
}  // namespace pace
