#include "formats/gguf_import.h"

#include <numeric>

#include "formats/gguf_builder.h"
#include "formats/rope_rows.h"

namespace pace {
namespace {

std::string Floats(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) bytes += Raw(value);
  return bytes;
}

// A q of two heads of four rows and a k of one head, rows of length 2.
std::string Model(std::string_view architecture) {
  std::vector<float> q(16);
  std::iota(q.begin(), q.end(), 0.0f);
  const std::vector<float> k(q.begin(), q.begin() + 8);
  const std::string prefix(architecture);
  return GgufBuilder()
      .Text("general.architecture", architecture)
      .Value(prefix + ".attention.head_count", GgufType::kU32, Raw(uint32_t{2}))
      .Value(prefix + ".attention.head_count_kv", GgufType::kU32, Raw(uint32_t{1}))
      .Tensor("blk.0.attn_q.weight", {2, 8}, kGgmlF32, Floats(q))
      .Tensor("blk.0.attn_k.weight", {2, 4}, kGgmlF32, Floats(k))
      .Tensor("blk.0.attn_v.weight", {2, 4}, kGgmlF32, Floats(k))
      .Build();
}

TEST(GgufImportTest, NamesHaveTheirCounterparts) {
  EXPECT_EQ(*HuggingFaceName("token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(*HuggingFaceName("output.weight"), "lm_head.weight");
  EXPECT_EQ(*HuggingFaceName("blk.12.ffn_down.weight"), "model.layers.12.mlp.down_proj.weight");
  EXPECT_EQ(*HuggingFaceName("blk.0.attn_k.bias"), "model.layers.0.self_attn.k_proj.bias");
  EXPECT_EQ(*HuggingFaceName("blk.0.attn_q_norm.weight"), "model.layers.0.self_attn.q_norm.weight");
}

TEST(GgufImportTest, NamesGoBackToWhereTheyCameFrom) {
  for (const char* const name : {"token_embd.weight", "output_norm.weight", "output.weight",
                                 "blk.12.ffn_down.weight", "blk.0.attn_k.bias"}) {
    EXPECT_EQ(*GgufName(*HuggingFaceName(name)), name);
  }
  for (const char* const name : {"model.layers.0.mlp.experts.0.up_proj.weight", "model.layers.0",
                                 "model.layers.0.self_attn.o_proj.bias", "blk.0.attn_k.bias"}) {
    EXPECT_FALSE(GgufName(name).ok()) << name;
  }
}

TEST(GgufImportTest, NamesWithoutCounterpartAreRefused) {
  for (const char* const name :
       {"rope_freqs.weight", "blk.0.ffn_gate_exps.weight", "blk.x.attn_q.weight",
        "blk..attn_q.weight", "blk.0", "", "output.bias"}) {
    EXPECT_FALSE(HuggingFaceName(name).ok()) << name;
  }
}

TEST(GgufImportTest, RowsOfQAndKAreReorderedForLlamaAlone) {
  const std::filesystem::path folder = ScratchFolder();
  for (const bool llama : {true, false}) {
    const std::string path = WriteFile(folder / "file.gguf", Model(llama ? "llama" : "qwen3"));
    const Result<GgufFile> file = GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const Result<GgufImporter> importer = GgufImporter::Create(*file);
    ASSERT_TRUE(importer.ok()) << importer.status().message();
    for (const GgufTensor& tensor : file->tensors()) {
      const Result<FloatTensor> imported = importer->Import(tensor);
      ASSERT_TRUE(imported.ok()) << imported.status().message();
      std::vector<float> expected = *Dequantize(tensor);
      const int64_t heads = tensor.name == "blk.0.attn_q.weight" ? 2 : 1;
      if (llama && tensor.name != "blk.0.attn_v.weight") {
        expected = InterleavedToHalves(expected, heads, 4);
      }
      EXPECT_EQ(imported->values, expected) << tensor.name;
      EXPECT_EQ(imported->shape, tensor.shape);
    }
  }
}

TEST(GgufImportTest, OtherArchitecturesAndHeadsThatDoNotFitAreRefused) {
  const std::filesystem::path folder = ScratchFolder();
  const auto create = [&](GgufBuilder& builder) {
    const Result<GgufFile> file = GgufFile::Open(WriteFile(folder / "file.gguf", builder.Build()));
    EXPECT_TRUE(file.ok());
    PACE_ASSIGN_OR_RETURN(const GgufImporter importer, GgufImporter::Create(*file));
    return importer.Import(file->tensors().at(0)).status();
  };
  GgufBuilder gemma;
  gemma.Text("general.architecture", "gemma");
  EXPECT_NE(create(gemma).message().find("general.architecture = gemma"), std::string::npos);
  GgufBuilder headless;
  headless.Text("general.architecture", "llama");
  EXPECT_NE(create(headless).message().find("llama.attention.head_count"), std::string::npos);
  GgufBuilder misfit;
  misfit.Text("general.architecture", "llama")
      .Value("llama.attention.head_count", GgufType::kI32, Raw(int32_t{3}))
      .Tensor("blk.0.attn_q.weight", {1, 4}, kGgmlF32, std::string(16, '\0'));
  EXPECT_NE(create(misfit).message().find("must hold 3 heads"), std::string::npos);
  GgufBuilder negative;
  negative.Text("general.architecture", "llama")
      .Value("llama.attention.head_count", GgufType::kI32, Raw(int32_t{-3}));
  EXPECT_NE(create(negative).message().find("must be in 1"), std::string::npos);
}

}  // namespace
}  // namespace pace
