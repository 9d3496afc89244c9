#include "convert/import_gguf.h"

#include <gtest/gtest.h>

#include "convert/test_models.h"
#include "formats/gguf_writer.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

// Metadata of a tiny model around what a test is about; one tensor, the
// embedding.
class Metadata {
 public:
  explicit Metadata(std::string architecture = "llama") : name_(std::move(architecture)) {
    writer.PutText("general.architecture", name_);
    for (const auto& [key, value] : std::map<std::string, uint32_t>{{"block_count", 1},
                                                                    {"embedding_length", 32},
                                                                    {"feed_forward_length", 64},
                                                                    {"attention.head_count", 4},
                                                                    {"context_length", 128}}) {
      writer.PutU32(Key(key), value);
    }
    writer.PutF32(Key("attention.layer_norm_rms_epsilon"), 1e-5f);
  }
  std::string Key(const std::string& key) const { return name_ + "." + key; }
  GgufFile Write() {
    writer.AddTensor("token_embd.weight", kGgmlF32, {8, 32});
    const std::string path = (ScratchFolder() / "model.gguf").string();
    EXPECT_TRUE(writer.Write(path, [](size_t) { return std::vector<float>(8 * 32); }).ok());
    Result<GgufFile> file = GgufFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return std::move(file).value();
  }

  GgufWriter writer;

 private:
  std::string name_;
};

// The error without the file's name.
std::string ErrorOf(const GgufFile& file, const Status& status) {
  const std::string prefix = file.path() + ": ";
  EXPECT_TRUE(status.message().starts_with(prefix)) << status.message();
  return status.message().substr(std::min(prefix.size(), status.message().size()));
}

TEST(ImportGgufTest, MetadataBecomesTheConfig) {
  Metadata metadata;
  metadata.writer.PutF32("llama.rope.freq_base", 100000.0f);
  metadata.writer.PutU32("llama.attention.head_count_kv", 2);
  metadata.writer.PutU32("llama.vocab_size", 8);
  metadata.writer.PutU32("tokenizer.ggml.bos_token_id", 1);
  metadata.writer.PutU32("tokenizer.ggml.eos_token_id", 2);
  metadata.writer.PutU32("tokenizer.ggml.eot_token_id", 3);
  metadata.writer.PutU32("llama.expert_count", 0);
  const GgufFile file = metadata.Write();
  const Result<ModelConfig> config = GgufModelConfig(file);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->architecture, Architecture::kLlama);
  EXPECT_EQ(config->vocab_size, 8);
  EXPECT_EQ(config->num_kv_heads, 2);
  EXPECT_EQ(config->head_dim, 8);
  // The decimal that was meant, not the float32 nearest to it.
  EXPECT_EQ(config->norm_epsilon, 1e-5);
  EXPECT_EQ(config->rope.theta, 100000.0);
  EXPECT_EQ(config->bos, 1);
  EXPECT_EQ(config->eos, (std::vector<TokenId>{2, 3}));
  EXPECT_TRUE(config->tied);
}

TEST(ImportGgufTest, KeysThatMayChangeTheModelAreRefusedByName) {
  const auto refused = [](const std::function<void(GgufWriter&)>& put,
                          const std::string& architecture = "llama") {
    Metadata metadata(architecture);
    put(metadata.writer);
    const GgufFile file = metadata.Write();
    return ErrorOf(file, GgufModelConfig(file).status());
  };
  EXPECT_EQ(refused([](GgufWriter& w) { w.PutU32("llama.expert_count", 8); }),
            "metadata llama.expert_count: is not supported (it may change the model)");
  EXPECT_EQ(refused([](GgufWriter& w) { w.PutText("llama.rope.scaling.type", "yarn"); }),
            "metadata llama.rope.scaling.type = yarn: must be none or linear");
  EXPECT_EQ(refused([](GgufWriter& w) { w.PutU32("llama.rope.dimension_count", 4); }),
            "metadata llama.rope.dimension_count = 4: must be the heads' size, 8");
  EXPECT_EQ(refused([](GgufWriter& w) { w.PutU32("llama.vocab_size", 9); }),
            "metadata llama.vocab_size = 9: token_embd.weight has 8 rows");
  EXPECT_EQ(refused([](GgufWriter& w) { w.PutU32("tokenizer.ggml.eos_token_id", 8); }),
            "metadata tokenizer.ggml.eos_token_id = 8: must be in 0 .. 7");
  EXPECT_EQ(refused([](GgufWriter&) {}, "gemma2"),
            "metadata general.architecture = gemma2: must be llama, qwen2 or qwen3");
}

TEST(ImportGgufTest, AShapeThatNoModelHasIsRefused) {
  Metadata metadata;
  metadata.writer.PutU32("llama.attention.head_count_kv", 3);
  const GgufFile file = metadata.Write();
  const std::string error = ErrorOf(file, OpenGguf(file.path(), false).status());
  EXPECT_NE(error.find("num_key_value_heads"), std::string::npos) << error;
}

void PutByteLevel(GgufWriter& writer, const std::string& pre) {
  writer.PutText("tokenizer.ggml.model", "gpt2");
  writer.PutText("tokenizer.ggml.pre", pre);
  writer.PutTexts("tokenizer.ggml.tokens",
                  std::vector<std::string>{"<e>", "a", "1", "2", "12", "Ġ", "Ġa", "<tool>"});
  writer.PutI32s("tokenizer.ggml.token_type", std::vector<int32_t>{3, 1, 1, 1, 1, 1, 1, 4});
  writer.PutTexts("tokenizer.ggml.merges", std::vector<std::string>{"1 2", "Ġ a"});
  writer.PutU32("tokenizer.ggml.bos_token_id", 0);
}

Tokenizer Built(const GgufFile& file) {
  const Result<std::optional<TokenizerSpec>> spec = GgufTokenizer(file);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  const Result<std::vector<FolderText>> files = TokenizerFiles(**spec);
  EXPECT_TRUE(files.ok()) << files.status().message();
  return *Tokenizer::Parse(files->front().text);
}

TEST(ImportGgufTest, ThePreTokenizerIsTheOneThatIsNamed) {
  using Ids = std::vector<TokenId>;
  const std::map<std::string, Ids> digits = {
      {"gpt-2", {4}}, {"smollm", {2, 3}}, {"qwen2", {2, 3}}, {"llama-bpe", {4}}, {"default", {4}}};
  for (const auto& [pre, expected] : digits) {
    Metadata metadata;
    PutByteLevel(metadata.writer, pre);
    const GgufFile file = metadata.Write();
    const Tokenizer tokenizer = Built(file);
    EXPECT_EQ(*tokenizer.Encode("12"), expected) << pre;
    EXPECT_EQ(*tokenizer.Encode("a a<e><tool>"), (Ids{1, 6, 0, 7})) << pre;
    // Llama 3's begin with their first token unless the file says otherwise.
    EXPECT_EQ(tokenizer.Encode("a", true)->size(), pre == "llama-bpe" ? 2u : 1u) << pre;
    EXPECT_EQ(tokenizer.Decode(Ids{0, 6, 7}, true), " a<tool>") << pre;
  }
}

TEST(ImportGgufTest, APreTokenizerThatIsNotKnownIsRefusedByName) {
  Metadata metadata;
  PutByteLevel(metadata.writer, "tekken");
  const GgufFile file = metadata.Write();
  const std::string error = ErrorOf(file, GgufTokenizer(file).status());
  EXPECT_TRUE(error.starts_with("metadata tokenizer.ggml.pre = tekken: is not known (gpt-2, "))
      << error;
  Metadata other;
  other.writer.PutText("tokenizer.ggml.model", "t5");
  const GgufFile second = other.Write();
  EXPECT_TRUE(ErrorOf(second, GgufTokenizer(second).status())
                  .starts_with("metadata tokenizer.ggml.model = t5: must be gpt2 or llama"));
}

TEST(ImportGgufTest, ScoresBecomeMerges) {
  Metadata metadata;
  GgufWriter& writer = metadata.writer;
  writer.PutText("tokenizer.ggml.model", "llama");
  writer.PutTexts("tokenizer.ggml.tokens",
                  std::vector<std::string>{"<unk>", "<s>", "</s>", "▁", "a", "b", "▁a", "ab"});
  writer.PutF32s("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -5, -6, -7, -2, -1});
  writer.PutI32s("tokenizer.ggml.token_type", std::vector<int32_t>{2, 3, 3, 1, 1, 1, 1, 1});
  writer.PutU32("tokenizer.ggml.bos_token_id", 1);
  writer.PutU32("tokenizer.ggml.eos_token_id", 2);
  const GgufFile file = metadata.Write();
  const Tokenizer tokenizer = Built(file);
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(*tokenizer.Encode("ab a", true), (Ids{1, 3, 7, 6}));
  EXPECT_EQ(*tokenizer.Encode("x"), (Ids{3, 0}));
  EXPECT_EQ(tokenizer.Decode(Ids{1, 3, 7, 6}, true), "ab a");
}

TEST(ImportGgufTest, TokensThatAreNotTextOrTwiceThereAreRefused) {
  for (const std::string& token : {std::string("a"), std::string("\xFF")}) {
    Metadata metadata;
    metadata.writer.PutText("tokenizer.ggml.model", "llama");
    metadata.writer.PutTexts("tokenizer.ggml.tokens", std::vector<std::string>{"a", token});
    metadata.writer.PutF32s("tokenizer.ggml.scores", std::vector<float>{0, 0});
    const GgufFile file = metadata.Write();
    const Result<std::optional<TokenizerSpec>> spec = GgufTokenizer(file);
    EXPECT_FALSE(spec.ok() && TokenizerFiles(**spec).ok());
  }
}

}  // namespace
}  // namespace pace
