#include "engines/weight_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/file.h"
#include "core/test_files.h"
#include "model/model_config_json.h"
#include "model/tiny_configs.h"

namespace pace {
namespace {

TEST(WeightFolderTest, ServersReadTheBitsThatWerePublished) {
  ModelConfig config = TinyModel(Architecture::kQwen3);
  config.tied = true;
  config.dtype = Dtype::kBF16;  // of the model that the run started from
  const WeightSet weights = RandomWeights(config, 5);
  WeightFolder folder((ScratchFolder() / "weights").string(), 2, Dtype::kF32);
  const Result<HeldFolder> held = folder.Write(PolicyVersion(7), config, weights);
  ASSERT_TRUE(held.ok()) << held.status().message();
  const std::string& written = held->path;
  const Result<ModelConfig> stored = ReadModelConfig(written);
  ASSERT_TRUE(stored.ok()) << stored.status().message();
  EXPECT_TRUE(stored->tied);
  const Result<WeightSet> again = WeightSet::Load(*stored, written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  for (const Parameter& parameter : ParametersOf(config)) {
    EXPECT_EQ(again->Floats(parameter.name), weights.Floats(parameter.name)) << parameter.name;
  }
  const Result<std::string> file = ReadFile(written + "/model.safetensors", 1 << 24);
  ASSERT_TRUE(file.ok());
  EXPECT_NE(file->find("\"lm_head.weight\""), std::string::npos);
}

TEST(WeightFolderTest, TheOldestVersionsAreRemoved) {
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  const std::filesystem::path path = ScratchFolder() / "weights";
  WeightFolder folder(path.string(), 2, Dtype::kF32);
  for (int64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(folder.Write(PolicyVersion(step), config, RandomWeights(config, 5)).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path / "v000001"));
  EXPECT_TRUE(std::filesystem::exists(path / "v000002"));
  EXPECT_TRUE(std::filesystem::exists(path / "v000003"));
  folder.Clear();
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

// A server that loads slowly: its version stays until it lets go.
TEST(WeightFolderTest, AVersionThatIsHeldStays) {
  const ModelConfig config = TinyModel(Architecture::kQwen3);
  const std::filesystem::path path = ScratchFolder() / "weights";
  WeightFolder folder(path.string(), 2, Dtype::kF32);
  std::shared_ptr<const void> hold;
  for (int64_t step = 0; step < 5; ++step) {
    Result<HeldFolder> held = folder.Write(PolicyVersion(step), config, RandomWeights(config, 5));
    ASSERT_TRUE(held.ok()) << held.status().message();
    if (step == 1) hold = held->hold;
  }
  EXPECT_FALSE(std::filesystem::exists(path / "v000000"));
  EXPECT_TRUE(std::filesystem::exists(path / "v000001"));
  EXPECT_FALSE(std::filesystem::exists(path / "v000002"));
  hold.reset();
  EXPECT_FALSE(std::filesystem::exists(path / "v000001"));
  folder.Clear();
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

}  // namespace
}  // namespace pace
