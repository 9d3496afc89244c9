#include "formats/checkpoint.h"

#include "core/test_files.h"
#include "formats/safetensors_writer.h"

namespace pace {
namespace {

void WriteShard(const std::filesystem::path& path, const std::vector<std::string>& names) {
  TensorViews tensors;
  for (const std::string& name : names) tensors[name] = {Dtype::kU8, {1}, Bytes("x")};
  ASSERT_TRUE(WriteSafetensors(path.string(), tensors, std::nullopt).ok());
}

// Two shards, one tensor each, under this index.
std::string OpenError(const std::string& index) {
  const std::filesystem::path folder = ScratchFolder();
  WriteShard(folder / "one.safetensors", {"a"});
  WriteShard(folder / "two.safetensors", {"b"});
  const std::string path = WriteFile(folder / kSafetensorsIndexName, index);
  const auto checkpoint = SafetensorsCheckpoint::OpenFolder(folder.string());
  if (checkpoint.ok()) return "";
  EXPECT_TRUE(checkpoint.status().message().starts_with(path)) << checkpoint.status().message();
  return checkpoint.status().message().substr(path.size() + 2);
}

TEST(CheckpointTest, ShardsReadAsOne) {
  EXPECT_EQ(OpenError(R"({"metadata":{"total_size":2},
                          "weight_map":{"a":"one.safetensors","b":"two.safetensors"}})"),
            "");
}

TEST(CheckpointTest, AnIndexThatDoesNotMatchItsShardsIsRefused) {
  EXPECT_NE(OpenError(R"({"weight_map":{"a":"one.safetensors","b":"three.safetensors"}})")
                .find("three.safetensors: cannot be opened: No such file"),
            std::string::npos);
  EXPECT_EQ(OpenError(R"({"weight_map":{"a":"two.safetensors"}})"),
            "weight_map.a = two.safetensors: the shard does not hold this tensor");
  EXPECT_EQ(OpenError(R"({"weight_map":{"a":"one.safetensors","a":"one.safetensors"}})"),
            "weight_map.a: is listed twice");
}

TEST(CheckpointTest, AnIndexOfAnotherFormIsRefused) {
  for (const char* const index :
       {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})", R"({"weight_map":{})",
        R"({"weight_map":{},"weight_map":{}})"}) {
    EXPECT_NE(OpenError(index), "") << index;
  }
}

TEST(CheckpointTest, AnIndexMayNotLeadOutOfItsFolder) {
  for (const char* const shard :
       {"../one.safetensors", "/one.safetensors", "x/../../y", "", "x/"}) {
    EXPECT_NE(OpenError(Concat(R"({"weight_map":{"a":")", shard, R"("}})"))
                  .find("must be a file in the folder of the index"),
              std::string::npos)
        << shard;
  }
}

TEST(CheckpointTest, ATensorInTwoShardsIsRefused) {
  const std::filesystem::path folder = ScratchFolder();
  WriteShard(folder / "one.safetensors", {"a", "b"});
  WriteShard(folder / "two.safetensors", {"b"});
  WriteFile(folder / kSafetensorsIndexName,
            R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const auto checkpoint = SafetensorsCheckpoint::OpenFolder(folder.string());
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_NE(checkpoint.status().message().find("tensor b: is also in"), std::string::npos);
}

TEST(CheckpointTest, ATensorThatTheIndexLeavesOutIsReadToo) {
  const std::filesystem::path folder = ScratchFolder();
  WriteShard(folder / "one.safetensors", {"a", "b"});
  WriteFile(folder / kSafetensorsIndexName, R"({"weight_map":{"a":"one.safetensors"}})");
  const auto checkpoint = SafetensorsCheckpoint::OpenFolder(folder.string());
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_NE(checkpoint->Find("b"), nullptr);
}

TEST(CheckpointTest, OneFileComesBeforeAnIndexAndAFolderWithoutWeightsIsAnError) {
  const std::filesystem::path folder = ScratchFolder();
  EXPECT_EQ(SafetensorsCheckpoint::OpenFolder(folder.string()).status().code(),
            StatusCode::kNotFound);
  WriteFile(folder / kSafetensorsIndexName, "not an index");
  WriteShard(folder / kSafetensorsFileName, {"a"});
  EXPECT_TRUE(SafetensorsCheckpoint::OpenFolder(folder.string()).ok());
}

}  // namespace
}  // namespace pace
