#include "formats/safetensors_writer.h"

#include "core/test_files.h"
#include "formats/checkpoint.h"

namespace pace {
namespace {

TensorView View(Dtype dtype, std::vector<int64_t> shape, std::string_view bytes) {
  return {dtype, std::move(shape), Bytes(bytes)};
}

// The package writes these bytes for the same tensors, as the peer test checks
// for many more.
TEST(SafetensorsWriterTest, WritesTheBytesThatThePackageWrites) {
  const std::string path = (ScratchFolder() / "file.safetensors").string();
  const std::string one_two = Raw(1.0f) + Raw(2.0f);
  const std::string three = Raw(3.0f);
  const TensorViews tensors = {{"b", View(Dtype::kF32, {1, 2}, one_two)},
                               {"a", View(Dtype::kU8, {1}, "\x07")},
                               {"c", View(Dtype::kF32, {}, three)}};
  ASSERT_TRUE(WriteSafetensors(path, tensors, SafetensorsMetadata{{"note", "a \"b\"\n\x01"}}).ok());
  std::string header = R"({"__metadata__":{"note":"a \"b\"\n\u0001"},)"
                       R"("b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                       R"("c":{"dtype":"F32","shape":[],"data_offsets":[8,12]},)"
                       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[12,13]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(ReadFile(path), Raw(uint64_t{header.size()}) + header + one_two + three + "\x07");
}

TEST(SafetensorsWriterTest, WhatIsWrittenReadsBack) {
  const std::string path = (ScratchFolder() / "file.safetensors").string();
  const std::string name = "tab\there \"quoted\" back\\slash \xC3\xBC";
  const TensorViews tensors = {{name, View(Dtype::kBF16, {2, 0}, "")},
                               {"", View(Dtype::kF4, {2, 3}, "abc")},
                               {"i", View(Dtype::kI64, {1}, "12345678")}};
  for (const auto& metadata :
       {std::optional<SafetensorsMetadata>(), std::optional(SafetensorsMetadata()),
        std::optional(SafetensorsMetadata{{"k", "v"}, {name, name}})}) {
    ASSERT_TRUE(WriteSafetensors(path, tensors, metadata).ok());
    const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->metadata(), metadata);
    ASSERT_EQ(file->tensors().size(), 3u);
    for (const auto& [key, tensor] : tensors) {
      const TensorView* const found = file->Find(key);
      ASSERT_NE(found, nullptr) << key;
      EXPECT_EQ(found->dtype, tensor.dtype);
      EXPECT_EQ(found->shape, tensor.shape);
      EXPECT_TRUE(std::ranges::equal(found->bytes, tensor.bytes));
    }
  }
}

TEST(SafetensorsWriterTest, WhatWouldNotReadBackIsRefusedAndTheOldFileStays) {
  const std::string path = WriteFile(ScratchFolder() / "file.safetensors", "old");
  const std::vector<TensorViews> wrong = {
      {{"short", View(Dtype::kF32, {2}, "1234")}},
      {{"odd", View(Dtype::kF4, {3}, "12")}},
      {{"negative", View(Dtype::kU8, {-1}, "")}},
      {{"__metadata__", View(Dtype::kU8, {1}, "1")}},
      {{"not utf-8 \xFF", View(Dtype::kU8, {1}, "1")}},
  };
  for (const TensorViews& tensors : wrong) {
    const Status status = WriteSafetensors(path, tensors, std::nullopt);
    EXPECT_FALSE(status.ok()) << tensors.begin()->first;
    EXPECT_TRUE(status.message().starts_with(path)) << status.message();
    EXPECT_EQ(ReadFile(path), "old");
  }
}

TEST(SafetensorsWriterTest, ShardsStayWithinTheLimitAndReadAsOneCheckpoint) {
  const std::filesystem::path folder = ScratchFolder();
  const TensorViews tensors = {
      {"a", View(Dtype::kU8, {4}, "aaaa")},      {"b", View(Dtype::kU8, {4}, "bbbb")},
      {"c", View(Dtype::kU8, {9}, "ccccccccc")}, {"d", View(Dtype::kU8, {3}, "ddd")},
      {"e", View(Dtype::kU8, {5}, "eeeee")},     {"f", View(Dtype::kU8, {1}, "f")},
  };
  ASSERT_TRUE(WriteShardedSafetensors(folder.string(), tensors, kPyTorchMetadata, 8).ok());
  EXPECT_EQ(ReadFile(folder / kSafetensorsIndexName), R"({
  "metadata": {
    "total_size": 26
  },
  "weight_map": {
    "a": "model-00001-of-00004.safetensors",
    "b": "model-00001-of-00004.safetensors",
    "c": "model-00002-of-00004.safetensors",
    "d": "model-00003-of-00004.safetensors",
    "e": "model-00003-of-00004.safetensors",
    "f": "model-00004-of-00004.safetensors"
  }
}
)");
  const auto checkpoint = SafetensorsCheckpoint::OpenFolder(folder.string());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint->tensors().size(), 6u);
  EXPECT_EQ(std::memcmp(checkpoint->Find("e")->bytes.data(), "eeeee", 5), 0);
  EXPECT_EQ(checkpoint->files()[0].metadata(), kPyTorchMetadata);
}

TEST(SafetensorsWriterTest, OneShardNeedsNoIndex) {
  const std::filesystem::path folder = ScratchFolder();
  const TensorViews tensors = {{"a", View(Dtype::kU8, {4}, "aaaa")}};
  ASSERT_TRUE(WriteShardedSafetensors(folder.string(), tensors, kPyTorchMetadata, 4).ok());
  EXPECT_TRUE(std::filesystem::exists(folder / kSafetensorsFileName));
  EXPECT_FALSE(std::filesystem::exists(folder / kSafetensorsIndexName));
}

TEST(SafetensorsWriterTest, AFolderWithWeightsIsRefused) {
  for (const char* const name :
       {"model.safetensors", "model.safetensors.index.json", "model-00001-of-00002.safetensors"}) {
    const std::filesystem::path folder = ScratchFolder();
    WriteFile(folder / name, "");
    const Status status = WriteShardedSafetensors(folder.string(), {}, kPyTorchMetadata, 4);
    EXPECT_FALSE(status.ok()) << name;
  }
  const std::string missing = (ScratchFolder() / "missing").string();
  EXPECT_FALSE(WriteShardedSafetensors(missing, {}, kPyTorchMetadata, 4).ok());
}

}  // namespace
}  // namespace pace
