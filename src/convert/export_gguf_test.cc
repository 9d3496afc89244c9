#include "convert/export_gguf.h"

#include <gtest/gtest.h>

#include "convert/import_gguf.h"
#include "convert/llama2c_model.h"
#include "convert/test_models.h"
#include "model/model_config_json.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

// What the metadata has room for.
void ExpectSameShape(const ModelConfig& a, const ModelConfig& b) {
  EXPECT_EQ(ModelConfigJson(a), ModelConfigJson(b));
}

TEST(ExportGgufTest, EveryArchitectureComesBackAsItWas) {
  for (const Architecture architecture :
       {Architecture::kLlama, Architecture::kQwen2, Architecture::kQwen3}) {
    const ModelSource source = TinySource(TinyConfig(architecture));
    const std::string path =
        (ScratchFolder() / std::string(ArchitectureName(architecture))).string();
    ASSERT_TRUE(ExportGguf(path, source, {}).ok());
    const Result<ModelSource> back = OpenGguf(path, false);
    ASSERT_TRUE(back.ok()) << back.status().message();
    ModelConfig config = source.config;
    config.bos.reset();  // they come with a tokenizer
    config.eos.clear();
    ExpectSameShape(back->config, config);
    ExpectSameTensors(source, *back);
    EXPECT_TRUE(back->texts.empty());
  }
}

TEST(ExportGgufTest, LlamaFilesHaveTheRowsOfQInterleaved) {
  const ModelSource source = TinySource(TinyConfig(Architecture::kLlama));
  const std::string path = (ScratchFolder() / "model.gguf").string();
  ASSERT_TRUE(ExportGguf(path, source, {}).ok());
  const Result<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok());
  const std::vector<float> stored = *Dequantize(*file->Find("blk.0.attn_q.weight"));
  const std::vector<float> ours =
      AllTensors(source).at("model.layers.0.self_attn.q_proj.weight").values;
  EXPECT_NE(stored, ours);
  // Row 1 of the file is row head_dim / 2 of ours.
  EXPECT_TRUE(std::equal(stored.begin() + 32, stored.begin() + 64, ours.begin() + 4 * 32));
}

TEST(ExportGgufTest, StretchedRotationsComeBack) {
  ModelConfig config = TinyConfig(Architecture::kLlama);
  config.rope = {.theta = 500000.0,
                 .type = RopeType::kLlama3,
                 .factor = 8.0,
                 .low_freq_factor = 1.0,
                 .high_freq_factor = 4.0,
                 .original_max_positions = 32};
  const std::filesystem::path folder = ScratchFolder();
  ASSERT_TRUE(ExportGguf((folder / "llama3").string(), TinySource(config), {}).ok());
  const Result<ModelSource> llama3 = OpenGguf((folder / "llama3").string(), false);
  ASSERT_TRUE(llama3.ok()) << llama3.status().message();
  EXPECT_EQ(RopeFrequencies(llama3->config), RopeFrequencies(config));
  EXPECT_EQ(llama3->config.rope.factor, 8.0);

  config.rope = {.type = RopeType::kLinear, .factor = 2.5};
  ASSERT_TRUE(ExportGguf((folder / "linear").string(), TinySource(config), {}).ok());
  const Result<ModelSource> linear = OpenGguf((folder / "linear").string(), false);
  ASSERT_TRUE(linear.ok());
  EXPECT_EQ(RopeFrequencies(linear->config), RopeFrequencies(config));

  // Other divisors are no rule of Llama 3's.
  config.rope = {.type = RopeType::kLlama3,
                 .factor = 8.0,
                 .low_freq_factor = 1.0,
                 .high_freq_factor = 2.0,
                 .original_max_positions = 128};
  ASSERT_TRUE(ExportGguf((folder / "other").string(), TinySource(config), {}).ok());
  EXPECT_NE(OpenGguf((folder / "other").string(), false)
                .status()
                .message()
                .find("must be the frequencies of Llama 3's rule"),
            std::string::npos);
}

TEST(ExportGgufTest, QuantisedMatricesStayNearAndVectorsExact) {
  ModelConfig config = TinyConfig(Architecture::kQwen3);
  const ModelSource source = TinySource(config);
  const std::string path = (ScratchFolder() / "model.gguf").string();
  GgufExportOptions options;
  options.type = kGgmlQ8_0;
  ASSERT_TRUE(ExportGguf(path, source, options).ok());
  const Result<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->Find("token_embd.weight")->type.id, kGgmlQ8_0);
  EXPECT_EQ(file->Find("output_norm.weight")->type.id, kGgmlF32);
  // 48 columns are no multiple of 32.
  EXPECT_EQ(file->Find("blk.0.attn_output.weight")->type.id, kGgmlF16);
  const Result<ModelSource> back = OpenGguf(path, false);
  ASSERT_TRUE(back.ok());
  const auto left = AllTensors(source);
  for (const auto& [name, tensor] : AllTensors(*back)) {
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      EXPECT_NEAR(tensor.values[i], left.at(name).values[i], 0.005) << name;
    }
  }
}

TEST(ExportGgufTest, ExpertsAreRefusedByName) {
  ModelConfig config = TinyConfig(Architecture::kQwen3);
  config.architecture = Architecture::kQwen3Moe;
  const auto folder = ScratchFolder();
  ModelSource source;
  source.config = config;
  const Status status = ExportGguf((folder / "x").string(), source, {});
  EXPECT_EQ(status.message(), "model_type = qwen3_moe: GGUF is written for llama, qwen2 and qwen3");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

std::string ByteLevelJson(const std::string& pre_tokenizer) {
  return R"({"added_tokens": [{"id": 5, "content": "<end>", "special": true, "normalized": false},
                              {"id": 6, "content": "<tool>", "special": false, "normalized": false}],
      "pre_tokenizer": )" +
         pre_tokenizer + R"(, "decoder": {"type": "ByteLevel"},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<end>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {"<end>": {"id": "<end>", "ids": [5], "tokens": ["<end>"]}}},
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "Ġa": 3, "1": 4},
                "merges": ["Ġ a"]}})";
}

const char* const kGpt2Json =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";

TEST(ExportGgufTest, ByteLevelTokenizersComeBack) {
  ModelSource source = TinySource(TinyConfig(Architecture::kQwen3));
  source.config.bos = 5;
  source.config.eos = {5, 2};
  source.config.pad = 5;
  source.texts = {{"tokenizer.json", ByteLevelJson(kGpt2Json)},
                  {"tokenizer_config.json", R"({"chat_template": "{{ messages }}"})"}};
  const std::string path = (ScratchFolder() / "model.gguf").string();
  ASSERT_TRUE(ExportGguf(path, source, {}).ok());
  const Result<ModelSource> back = OpenGguf(path, false);
  ASSERT_TRUE(back.ok()) << back.status().message();
  ExpectSameShape(back->config, source.config);
  ASSERT_EQ(back->texts.size(), 2u);
  const Result<Tokenizer> ours = Tokenizer::Parse(source.texts[0].text);
  const Result<Tokenizer> theirs = Tokenizer::Parse(back->texts[0].text);
  ASSERT_TRUE(ours.ok() && theirs.ok());
  for (const char* const text : {"a a<end>b", "1 a1 <tool> a", ""}) {
    for (const bool special : {false, true}) {
      EXPECT_EQ(*ours->Encode(text, special), *theirs->Encode(text, special));
    }
  }
  const std::vector<TokenId> ids = {5, 3, 6, 4};
  EXPECT_EQ(ours->Decode(ids, true), theirs->Decode(ids, true));
  EXPECT_NE(back->texts[1].text.find("{{ messages }}"), std::string::npos);
}

TEST(ExportGgufTest, APreTokenizerWithoutANameIsRefused) {
  ModelSource source = TinySource(TinyConfig(Architecture::kQwen3));
  source.texts = {{"tokenizer.json", ByteLevelJson(R"({"type": "ByteLevel"})")}};
  const std::string path = (ScratchFolder() / "model.gguf").string();
  const Status status = ExportGguf(path, source, {});
  EXPECT_NE(status.message().find("GGUF has no name for its pre-tokenizer"), std::string::npos);
  GgufExportOptions options;
  options.tokenizer = false;
  EXPECT_TRUE(ExportGguf(path, source, options).ok());
}

TEST(ExportLlama2cTest, ComesBackAsItWas) {
  const std::filesystem::path folder = ScratchFolder();
  for (const bool tied : {true, false}) {
    ModelConfig config = TinyConfig(Architecture::kLlama);
    config.tied = tied;
    config.eos = {2, 1};
    const ModelSource source = TinySource(config);
    const std::string path = (folder / (tied ? "tied" : "untied")).string();
    ASSERT_TRUE(ExportLlama2c(path, source).ok());
    const Result<ModelSource> back = OpenLlama2c(path, "");
    ASSERT_TRUE(back.ok()) << back.status().message();
    ExpectSameShape(back->config, config);
    ExpectSameTensors(source, *back);
  }
}

TEST(ExportLlama2cTest, RefusesByNameWhatTheFormatCannotSay) {
  const std::filesystem::path folder = ScratchFolder();
  const auto refused = [&](const ModelConfig& config) {
    return ExportLlama2c((folder / "x").string(), TinySource(config)).message();
  };
  EXPECT_EQ(refused(TinyConfig(Architecture::kQwen3)),
            "model_type = qwen3: llama2.c knows llama alone");
  ModelConfig config = TinyConfig(Architecture::kLlama);
  config.rope.theta = 500000;
  EXPECT_EQ(refused(config), "rope_theta = 5e+05: llama2.c has 10000, not stretched");
  config = TinyConfig(Architecture::kLlama);
  config.norm_epsilon = 1e-6;
  EXPECT_EQ(refused(config), "rms_norm_eps = 1e-06: llama2.c has 1e-5");
  config = TinyConfig(Architecture::kLlama);
  config.head_dim = 16;
  EXPECT_EQ(refused(config), "head_dim = 16: llama2.c splits the hidden size into heads");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace pace
