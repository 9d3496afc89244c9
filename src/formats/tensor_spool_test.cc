#include "formats/tensor_spool.h"

#include <gtest/gtest.h>

#include "core/test_files.h"

namespace pace {
namespace {

bool IsEmpty(const std::filesystem::path& folder) {
  return std::filesystem::directory_iterator(folder) == std::filesystem::directory_iterator();
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(TensorSpoolTest, GivesBackWhatWasAddedAndLeavesNoFile) {
  const auto folder = ScratchFolder();
  Result<TensorSpool> spool = TensorSpool::Create(folder.string());
  ASSERT_TRUE(spool.ok());
  const std::vector<float> values = {1.0f, -2.5f, 0.0f};
  ASSERT_TRUE(spool->Add("b", {3}, values, Dtype::kF32).ok());
  ASSERT_TRUE(spool->Add("a", {1, 2}, std::span(values).first(2), Dtype::kBF16).ok());
  ASSERT_TRUE(spool->Add("none", {0, 4}, {}, Dtype::kF16).ok());
  EXPECT_FALSE(IsEmpty(folder));
  const Result<SpooledTensors> tensors = spool->Finish();
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  EXPECT_TRUE(IsEmpty(folder));
  EXPECT_EQ(tensors->views.size(), 3u);
  EXPECT_EQ(TextOf(tensors->views.at("b").bytes), Raw(1.0f) + Raw(-2.5f) + Raw(0.0f));
  EXPECT_EQ(TextOf(tensors->views.at("a").bytes), Raw(uint16_t{0x3F80}) + Raw(uint16_t{0xC020}));
  EXPECT_EQ(tensors->views.at("a").shape, (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(tensors->views.at("none").bytes.empty());
}

TEST(TensorSpoolTest, ANameMayOccurOnce) {
  const auto folder = ScratchFolder();
  Result<TensorSpool> spool = TensorSpool::Create(folder.string());
  ASSERT_TRUE(spool.ok());
  const std::vector<float> values = {1.0f};
  ASSERT_TRUE(spool->Add("a", {1}, values, Dtype::kF32).ok());
  ASSERT_TRUE(spool->Add("a", {1}, values, Dtype::kF32).ok());
  EXPECT_EQ(spool->Finish().status().message(), "tensor a: occurs twice");
}

TEST(TensorSpoolTest, ASpoolThatIsNotFinishedLeavesNoFile) {
  const auto folder = ScratchFolder();
  {
    Result<TensorSpool> spool = TensorSpool::Create(folder.string());
    ASSERT_TRUE(spool.ok());
    const TensorSpool moved = std::move(*spool);
  }
  EXPECT_TRUE(IsEmpty(folder));
  EXPECT_FALSE(TensorSpool::Create((folder / "nosuch").string()).ok());
}

}  // namespace
}  // namespace pace
