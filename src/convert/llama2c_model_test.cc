#include "convert/llama2c_model.h"

#include <gtest/gtest.h>

#include <map>

#include "convert/test_models.h"
#include "core/random.h"
#include "core/test_data.h"
#include "core/utf8.h"
#include "model/model_config_json.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

// llama2.c's encoder, as its source has it: characters or bytes, then the best
// pair, the first among equals.
std::vector<TokenId> Llama2cEncode(const Llama2cVocabulary& vocabulary, const std::string& text) {
  std::map<std::string, TokenId> ids;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    ids.emplace(vocabulary.tokens[id].bytes, static_cast<TokenId>(id));
  }
  std::vector<TokenId> tokens = {1};
  if (!text.empty()) tokens.push_back(ids.at(" "));
  for (size_t at = 0; at < text.size();) {
    const size_t length = ReadCodePoint(text, at).num_bytes;
    const auto known = ids.find(text.substr(at, length));
    if (known != ids.end()) {
      tokens.push_back(known->second);
    } else {
      for (size_t i = 0; i < length; ++i) {
        tokens.push_back(static_cast<unsigned char>(text[at + i]) + 3);
      }
    }
    at += length;
  }
  const auto token = [&](TokenId id) { return vocabulary.tokens[static_cast<size_t>(id)]; };
  for (;;) {
    float best_score = -1e10f;
    TokenId best_id = -1;
    size_t best_at = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto joined = ids.find(token(tokens[i]).bytes + token(tokens[i + 1]).bytes);
      if (joined == ids.end() || token(joined->second).score <= best_score) continue;
      best_score = token(joined->second).score;
      best_id = joined->second;
      best_at = i;
    }
    if (best_id < 0) return tokens;
    tokens[best_at] = best_id;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

class Llama2cTokenizerTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path path = SharedData() / "weights" / "tok512.bin";
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << WithoutData(path, 1);
    }
    Result<Llama2cVocabulary> vocabulary = ReadLlama2cVocabulary(path.string());
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
    vocabulary_ = std::move(vocabulary).value();
  }

  Llama2cVocabulary vocabulary_;
};

TEST_F(Llama2cTokenizerTest, IdsAreThoseOfLlama2c) {
  const Result<TokenizerSpec> spec = Llama2cTokenizer(vocabulary_);
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const Result<std::vector<FolderText>> files = TokenizerFiles(*spec);
  ASSERT_TRUE(files.ok()) << files.status().message();
  const Tokenizer tokenizer = *Tokenizer::Parse(files->front().text);
  const std::vector<std::string> pieces = {"Once upon a time",
                                           " the",
                                           "Lily",
                                           " and",
                                           "  ",
                                           "a",
                                           "e",
                                           "s",
                                           "t",
                                           "h",
                                           "\n",
                                           "!",
                                           "\xE2\x80\x9C",
                                           "é",
                                           "中",
                                           "\xF0\x9F\x98\x80",
                                           "\u2581",
                                           "aaaa",
                                           "....",
                                           "<0x0A>",
                                           "X",
                                           "9"};
  const CounterRandom random(3, 1);
  for (uint64_t round = 0; round < 500; ++round) {
    std::string text;
    for (uint64_t i = 0; i < random.Bits(round, 0) % 25; ++i) {
      text += pieces[random.Bits(round, 1 + i) % pieces.size()];
    }
    const std::vector<TokenId> ids = *tokenizer.Encode(text, /*add_special_tokens=*/true);
    EXPECT_EQ(ids, Llama2cEncode(vocabulary_, text)) << text;
    EXPECT_EQ(tokenizer.Decode(ids, /*skip_special=*/true), text);
  }
}

TEST_F(Llama2cTokenizerTest, AVocabularyWithoutBytesIsRefused) {
  vocabulary_.tokens[20].bytes = "x";
  EXPECT_EQ(Llama2cTokenizer(vocabulary_).status().message(), "token 20 = 'x': must be <0x11>");
  vocabulary_.tokens.resize(100);
  EXPECT_FALSE(Llama2cTokenizer(vocabulary_).ok());
}

TEST_F(Llama2cTokenizerTest, TheFolderReadsBackAsTheModel) {
  const std::filesystem::path folder = ScratchFolder();
  const std::string path = (SharedData() / "weights" / "stories260K.bin").string();
  const std::string tokenizer = (SharedData() / "weights" / "tok512.bin").string();
  const Result<ModelSource> source = OpenLlama2c(path, tokenizer);
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ(source->config.num_parameters(), 260032);
  // In two shards.
  ModelFolderOptions options;
  options.max_shard_bytes = 700'000;
  ASSERT_TRUE(WriteModelFolder((folder / "model").string(), *source, options).ok());
  const Result<ModelSource> back = OpenModelFolder((folder / "model").string());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(ModelConfigJson(back->config), ModelConfigJson(source->config));
  // The first source hands its tensors out once.
  ExpectSameTensors(*OpenLlama2c(path, tokenizer), *back);
  EXPECT_EQ(back->texts.size(), 4u);  // tokenizer, its config, generation_config, config
  EXPECT_TRUE(Tokenizer::Load((folder / "model").string()).ok());
}

TEST(ModelFolderTest, AFailureLeavesNothingBehind) {
  const std::filesystem::path folder = ScratchFolder();
  ModelSource source = TinySource(TinyConfig(Architecture::kLlama));
  const auto tensor = source.tensor;
  source.tensor = [tensor](int64_t index) -> Result<FloatTensor> {
    if (index == 5) return DataLoss("torn");
    return tensor(index);
  };
  EXPECT_EQ(WriteModelFolder((folder / "a" / "model").string(), source, {}).message(), "torn");
  source.tensor = tensor;
  source.num_tensors -= 1;  // one is missing
  EXPECT_FALSE(WriteModelFolder((folder / "a" / "model").string(), source, {}).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace pace
