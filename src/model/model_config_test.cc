#include <gtest/gtest.h>

#include <filesystem>
#include <numbers>

#include "core/test_data.h"
#include "core/test_files.h"
#include "model/model_config_json.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

ModelConfig Parsed(const std::string& json) {
  const Result<ModelConfig> config = ParseModelConfig(json);
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? *config : ModelConfig();
}

// A valid config with further keys.
std::string With(const std::string& model_type, const std::string& keys) {
  return Concat(R"({"model_type":")", model_type,
                R"(","vocab_size":64,"hidden_size":32,"intermediate_size":48,)",
                R"("num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2)",
                keys.empty() ? "" : ",", keys, "}");
}

void ExpectRefused(const std::string& json, const std::string& part) {
  const Result<ModelConfig> config = ParseModelConfig(json);
  ASSERT_FALSE(config.ok()) << json;
  EXPECT_NE(config.status().message().find(part), std::string::npos) << config.status().message();
  EXPECT_EQ(config.status().message().find('\n'), std::string::npos);
}

TEST(ModelConfigTest, AbsentKeysTakeTheDefaultsOfTransformers) {
  const ModelConfig llama = Parsed(R"({"model_type":"llama"})");
  EXPECT_EQ(llama.vocab_size, 32000);
  EXPECT_EQ(llama.num_kv_heads, 32);
  EXPECT_EQ(llama.head_dim, 128);
  EXPECT_EQ(llama.norm_epsilon, 1e-6);
  EXPECT_EQ(llama.rope.theta, 10000);
  EXPECT_FALSE(llama.tied || llama.qkv_bias || llama.mlp_bias || llama.qk_norm);
  EXPECT_EQ(llama.bos, 1);
  EXPECT_EQ(llama.eos, std::vector<TokenId>{2});

  const ModelConfig qwen2 = Parsed(R"({"model_type":"qwen2","num_attention_heads":64})");
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias);
  EXPECT_EQ(qwen2.num_kv_heads, 32);
  EXPECT_EQ(qwen2.head_dim, 64);
  EXPECT_TRUE(qwen2.eos.empty());

  const ModelConfig qwen3 = Parsed(R"({"model_type":"qwen3","num_attention_heads":64})");
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_TRUE(qwen3.qk_norm);

  const ModelConfig moe = Parsed(R"({"model_type":"qwen3_moe"})");
  EXPECT_EQ(moe.num_kv_heads, 4);
  EXPECT_EQ(moe.head_dim, 64);
  EXPECT_EQ(moe.moe->num_experts, 128);
  EXPECT_EQ(moe.moe->num_experts_per_token, 8);
  EXPECT_EQ(moe.moe->intermediate_size, 768);
  EXPECT_FALSE(moe.moe->normalize_weights);
}

TEST(ModelConfigTest, NullHeadsMeanOneForEveryQuery) {
  EXPECT_EQ(Parsed(R"({"model_type":"qwen2","num_key_value_heads":null})").num_kv_heads, 32);
  EXPECT_EQ(Parsed(With("llama", R"("head_dim":null)")).head_dim, 8);
  ExpectRefused(With("qwen3", R"("head_dim":null)"), "head_dim");
}

TEST(ModelConfigTest, ClassicAndVersion5LayoutsAreTheSameConfig) {
  const std::string scaling = R"("factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
                              R"("original_max_position_embeddings":32)";
  const std::string classic =
      ModelConfigJson(Parsed(With("llama", R"("rope_theta":5e5,"torch_dtype":"bfloat16",)"
                                           R"("rope_scaling":{"type":"llama3",)" +
                                               scaling + "}")));
  const std::string version5 = ModelConfigJson(
      Parsed(With("llama", R"("dtype":"bfloat16","layer_types":["full_attention",)"
                           R"("full_attention"],"rope_parameters":{"rope_theta":500000,)"
                           R"("rope_type":"llama3",)" +
                               scaling + "}")));
  EXPECT_EQ(classic, version5);
  EXPECT_NE(classic.find("llama3"), std::string::npos);
}

TEST(ModelConfigTest, ExpertsAreCountedUnderEitherName) {
  EXPECT_EQ(Parsed(With("qwen3_moe", R"("num_experts":16)")).moe->num_experts, 16);
  EXPECT_EQ(Parsed(With("qwen3_moe", R"("num_local_experts":16)")).moe->num_experts, 16);
  ExpectRefused(With("qwen3_moe", R"("num_local_experts":16,"num_experts":8)"),
                "num_local_experts = 16");
  EXPECT_FALSE(Parsed(With("qwen3_moe", R"("num_experts":0)")).moe.has_value());
}

TEST(ModelConfigTest, SparseLayersFollowStepAndList) {
  const ModelConfig config =
      Parsed(R"({"model_type":"qwen3_moe","num_hidden_layers":6,"decoder_sparse_step":2,)"
             R"("mlp_only_layers":[3]})");
  std::vector<int64_t> sparse;
  for (int64_t layer = 0; layer < 6; ++layer) {
    if (config.IsSparse(layer)) sparse.push_back(layer);
  }
  EXPECT_EQ(sparse, (std::vector<int64_t>{1, 5}));
}

TEST(ModelConfigTest, EndTokensAreOneManyOrNone) {
  EXPECT_EQ(Parsed(With("llama", R"("eos_token_id":7)")).eos, std::vector<TokenId>{7});
  EXPECT_EQ(Parsed(With("llama", R"("eos_token_id":[7,8])")).eos, (std::vector<TokenId>{7, 8}));
  EXPECT_TRUE(Parsed(With("llama", R"("eos_token_id":null)")).eos.empty());
  EXPECT_FALSE(Parsed(With("llama", R"("pad_token_id":-1)")).pad.has_value());
}

TEST(ModelConfigTest, WhatWeDoNotComputeIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("rope_scaling":{"type":"yarn","factor":4.0})", "rope_scaling.rope_type = yarn"},
      {R"("rope_parameters":{"rope_type":"dynamic","factor":2})", "rope_parameters.rope_type"},
      {R"("rope_scaling":{"type":"longrope","short_factor":[1]})", "rope_scaling.short_factor"},
      {R"("rope_scaling":{"type":"default","mrope_section":[1]})", "rope_scaling.mrope_section"},
      {R"("rope_scaling":{"factor":4.0})", "rope_scaling.factor = 4"},
      {R"("rope_scaling":{"type":"linear"})", "rope_scaling.factor: is missing"},
      {R"("rope_parameters":{"rope_type":"default","partial_rotary_factor":0.5})",
       "rope_parameters.partial_rotary_factor = 0.5"},
      {R"("partial_rotary_factor":0.25)", "partial_rotary_factor = 0.25"},
      {R"("use_sliding_window":true,"sliding_window":16)", "use_sliding_window"},
      {R"("use_sliding_window":true)", "use_sliding_window"},
      {R"("layer_types":["full_attention","sliding_attention"])", "layer_types[1]"},
      {R"("layer_types":["full_attention"])", "layer_types: lists 1 layers"},
      {R"("hidden_act":"gelu")", "hidden_act = gelu"},
      {R"("quantization_config":{"bits":4})", "quantization_config"},
      {R"("attention_dropout":0.1)", "attention_dropout = 0.1"},
      {R"("pretraining_tp":2)", "pretraining_tp = 2"},
      {R"("logits_scaling":8.0)", "logits_scaling: is not supported for model_type qwen3"},
      {R"("num_experts":8)", "num_experts: is not supported"},
      {R"("mlp_bias":true)", "mlp_bias"},
      {R"("per_layer_config":{"0":{}})", "per_layer_config"},
      {R"("something":[0])", "something"},
      {R"("something":"x")", "something"},
      {R"("dtype":"float64")", "dtype = float64"},
  };
  for (const auto& [keys, part] : cases) ExpectRefused(With("qwen3", keys), part);
  ExpectRefused(With("mistral", ""), "model_type = mistral: must be llama");
  ExpectRefused("{}", "model_type: is missing");
  ExpectRefused(With("llama", R"("sliding_window":4096)"), "sliding_window");
  ExpectRefused(With("qwen2", R"("attention_bias":true)"), "attention_bias");
}

TEST(ModelConfigTest, WhatAsksForNothingIsAccepted) {
  Parsed(With("llama", R"("something":null,"other":false,"third":[],"fourth":{},"fifth":"",)"
                       R"("sliding_window":null,"quantization_config":null)"));
  Parsed(With("qwen2", R"("attention_bias":false,"use_sliding_window":false,"sliding_window":16)"));
  Parsed(With("qwen3", R"("use_sliding_window":true,"sliding_window":null,"hidden_act":"swish")"));
  Parsed(With("qwen3", R"("initializer_range":0.5,"_name_or_path":"x","architectures":["A"],)"
                       R"("max_window_layers":1,"temperature":0.5,"transformers_version":"9")"));
}

TEST(ModelConfigTest, AbsurdSizesAreRefused) {
  ExpectRefused(With("llama", R"("vocab_size":0)"), "vocab_size = 0: must be >= 1");
  ExpectRefused(With("llama", R"("hidden_size":99999999999999999999)"), "hidden_size");
  ExpectRefused(With("llama", R"("num_key_value_heads":3)"), "must divide num_attention_heads");
  ExpectRefused(With("llama", R"("head_dim":7)"), "head_dim = 7: must be even");
  ExpectRefused(With("llama", R"("num_attention_heads":4096,"num_key_value_heads":1)"),
                "it is hidden_size / num_attention_heads");
  ExpectRefused(With("llama", R"("hidden_size":1048576)"),
                "head_dim = 262144: must be even, from 2 to 4096 (it is hidden_size /");
  ExpectRefused(With("llama", R"("pad_token_id":64)"), "pad_token_id = 64: must be less than");
  ExpectRefused(With("llama", R"("head_dim":128,"hidden_size":1048576,"intermediate_size":4194304,)"
                              R"("num_hidden_layers":1024)"),
                "parameters: must be at most");
  ExpectRefused(With("qwen3_moe", R"("num_experts":4,"num_experts_per_tok":5)"),
                "num_experts_per_tok = 5");
  ExpectRefused(With("qwen3_moe", R"("num_experts":4096,"num_hidden_layers":1024)"),
                "num_experts = 4096: times num_hidden_layers");
  ExpectRefused(With("qwen3_moe", R"("decoder_sparse_step":0)"), "decoder_sparse_step = 0");
}

TEST(ModelConfigTest, WrittenConfigsReadBackTheSame) {
  for (TinyConfig& tiny : TinyConfigs()) {
    tiny.config.dtype = Dtype::kBF16;
    tiny.config.eos = {3, 4};
    tiny.config.pad = 5;
    const std::string json = ModelConfigJson(tiny.config);
    const ModelConfig again = Parsed(json);
    EXPECT_EQ(ModelConfigJson(again), json) << tiny.name;
    EXPECT_EQ(again.num_parameters(), tiny.config.num_parameters()) << tiny.name;
    EXPECT_EQ(again.qkv_bias, tiny.config.qkv_bias) << tiny.name;
    EXPECT_EQ(again.qk_norm, tiny.config.qk_norm) << tiny.name;
    EXPECT_EQ(RopeFrequencies(again), RopeFrequencies(tiny.config)) << tiny.name;
    EXPECT_EQ(again.eos, tiny.config.eos) << tiny.name;
  }
}

TEST(ModelConfigTest, WritesAsTransformersDoes) {
  ModelConfig config = Parsed(With("llama", R"("rope_theta":5e5,"torch_dtype":"bfloat16",)"
                                            R"("rope_scaling":{"type":"linear","factor":2.5})"));
  config.eos = {3, 4};
  config.pad = 5;
  EXPECT_EQ(GenerationConfigJson(config),
            "{\n  \"bos_token_id\": 1,\n  \"pad_token_id\": 5,\n"
            "  \"eos_token_id\": [\n    3,\n    4\n  ]\n}\n");
  const std::string json = ModelConfigJson(config);
  EXPECT_EQ(json.find("{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n"), 0u) << json;
  for (const char* line :
       {"\n  \"rms_norm_eps\": 1e-06,\n", "\n  \"rope_theta\": 500000.0,\n",
        "\n  \"rope_scaling\": {\n    \"rope_type\": \"linear\",\n    \"factor\": 2.5\n  },\n",
        "\n  \"attention_dropout\": 0.0,\n  \"attention_bias\": false,\n"}) {
    EXPECT_NE(json.find(line), std::string::npos) << line << json;
  }
}

TEST(ModelConfigTest, GenerationConfigReplacesTheEndTokens) {
  const std::filesystem::path folder = ScratchFolder();
  WriteFile(folder / "config.json", With("llama", R"("eos_token_id":7)"));
  EXPECT_EQ(ReadModelConfig(folder.string())->eos, std::vector<TokenId>{7});
  WriteFile(folder / "generation_config.json", R"({"eos_token_id":null,"top_p":0.9})");
  EXPECT_EQ(ReadModelConfig(folder.string())->eos, std::vector<TokenId>{7});
  WriteFile(folder / "generation_config.json", R"({"eos_token_id":[8,9],"top_p":0.9})");
  EXPECT_EQ(ReadModelConfig(folder.string())->eos, (std::vector<TokenId>{8, 9}));
  WriteFile(folder / "generation_config.json", R"({"eos_token_id":[8,)");
  EXPECT_NE(ReadModelConfig(folder.string()).status().message().find("generation_config.json"),
            std::string::npos);
  EXPECT_EQ(ReadModelConfig((folder / "none").string()).status().code(), StatusCode::kNotFound);
}

TEST(ModelConfigTest, EndTokensAreInTheVocabulary) {
  ExpectRefused(With("llama", R"("eos_token_id":64)"),
                "eos_token_id = 64: must be less than vocab_size, 64");
  ExpectRefused(With("llama", R"("eos_token_id":[1,99])"), "eos_token_id = 99");
  const std::filesystem::path folder = ScratchFolder();
  WriteFile(folder / "config.json", With("llama", R"("eos_token_id":7)"));
  WriteFile(folder / "generation_config.json", R"({"eos_token_id":64})");
  EXPECT_NE(ReadModelConfig(folder.string())
                .status()
                .message()
                .find("generation_config.json: eos_token_id = 64"),
            std::string::npos);
}

TEST(ModelConfigTest, AnotherDtypeLeavesEveryOtherKey) {
  const std::string keys =
      R"("transformers_version":"4.51.0","torch_dtype":"bfloat16","eos_token_id":7)";
  const std::string json = *WithStoredDtype(With("qwen3", keys), Dtype::kF32);
  EXPECT_NE(json.find(R"("transformers_version": "4.51.0")"), std::string::npos) << json;
  EXPECT_EQ(Parsed(json).dtype, Dtype::kF32);
  EXPECT_EQ(Parsed(json).eos, std::vector<TokenId>{7});
  const std::string newer = *WithStoredDtype(With("qwen3", R"("dtype":"float16")"), Dtype::kBF16);
  EXPECT_EQ(Parsed(newer).dtype, Dtype::kBF16);
  EXPECT_EQ(newer.find("torch_dtype"), std::string::npos);
}

TEST(ModelConfigTest, RotaryFrequenciesFallFromOneByPowersOfTheBase) {
  ModelConfig config = TinyModel(Architecture::kLlama);
  config.head_dim = 8;
  config.rope.theta = 16;
  EXPECT_EQ(RopeFrequencies(config), (std::vector<float>{1, 0.5F, 0.25F, 0.125F}));
  config.rope.type = RopeType::kLinear;
  config.rope.factor = 4;
  EXPECT_EQ(RopeFrequencies(config), (std::vector<float>{0.25F, 0.125F, 0.0625F, 0.03125F}));
}

TEST(ModelConfigTest, Llama3StretchesLongWavesAlone) {
  ModelConfig config = TinyModel(Architecture::kLlama);
  config.head_dim = 64;
  const std::vector<float> plain = RopeFrequencies(config);
  config.rope.type = RopeType::kLlama3;
  config.rope.factor = 8;
  config.rope.original_max_positions = 256;
  const std::vector<float> stretched = RopeFrequencies(config);
  size_t num_between = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wave = 2 * std::numbers::pi / plain[i];
    if (wave < 64) {
      EXPECT_EQ(stretched[i], plain[i]);
    } else if (wave > 256) {
      EXPECT_EQ(stretched[i], plain[i] / 8);
    } else {
      EXPECT_LT(stretched[i], plain[i]);
      EXPECT_GT(stretched[i], plain[i] / 8);
      ++num_between;
    }
  }
  EXPECT_GT(num_between, 0U);
}

TEST(ModelConfigTest, ReferenceConfigsAreRead) {
  const std::filesystem::path models = SharedData() / "models";
  if (!std::filesystem::exists(models)) GTEST_SKIP() << WithoutData(models, 5);
  int num_read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const Result<ModelConfig> config = ReadModelConfig(entry.path().string());
    ASSERT_TRUE(config.ok()) << config.status().message();
    ++num_read;
    if (!std::filesystem::exists(entry.path() / "config_v5.json")) continue;
    const Result<ModelConfig> version5 = ReadModelConfig(entry.path().string(), "config_v5.json");
    ASSERT_TRUE(version5.ok()) << version5.status().message();
    EXPECT_EQ(ModelConfigJson(*version5), ModelConfigJson(*config));
  }
  EXPECT_GT(num_read, 0);
}

}  // namespace
}  // namespace pace
