#include "formats/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace pace {
namespace {

TEST(DtypeTest, EveryNameReadsBackToItself) {
  for (int i = 0; i < kNumDtypes; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(ParseDtype(DtypeName(dtype)), dtype) << DtypeName(dtype);
  }
}

TEST(DtypeTest, NamesOutsideTheFormatAreUnknown) {
  for (const char* const name : {"", "f32", "F33", "F8_E4M3FN", "C128", "F32 "}) {
    EXPECT_FALSE(ParseDtype(name).has_value()) << name;
  }
}

TEST(DtypeTest, ScalarsTakeOneElementAndEmptyTensorsNone) {
  EXPECT_EQ(*TensorBytes(Dtype::kF32, {}), 4);
  EXPECT_EQ(*TensorBytes(Dtype::kF64, std::vector<int64_t>{3, 0, 5}), 0);
  EXPECT_EQ(*TensorBytes(Dtype::kBF16, std::vector<int64_t>{3, 5}), 30);
}

TEST(DtypeTest, ElementsBelowAByteMustFillWholeBytes) {
  EXPECT_EQ(*TensorBytes(Dtype::kF4, std::vector<int64_t>{2, 3}), 3);
  EXPECT_EQ(*TensorBytes(Dtype::kF6E2M3, std::vector<int64_t>{4}), 3);
  EXPECT_FALSE(TensorBytes(Dtype::kF4, std::vector<int64_t>{3}).ok());
  EXPECT_FALSE(TensorBytes(Dtype::kF6E3M2, std::vector<int64_t>{3}).ok());
}

TEST(DtypeTest, SizesThatDoNotFitAreErrors) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(TensorBytes(Dtype::kU8, std::vector<int64_t>{kHuge, kHuge}).ok());
  EXPECT_FALSE(TensorBytes(Dtype::kF32, std::vector<int64_t>{kHuge}).ok());
  EXPECT_FALSE(TensorBytes(Dtype::kF32, std::vector<int64_t>{kHuge, kHuge, 0}).ok());
  EXPECT_EQ(*TensorBytes(Dtype::kF32, std::vector<int64_t>{0, kHuge, kHuge}), 0);
  EXPECT_FALSE(TensorBytes(Dtype::kF32, std::vector<int64_t>{-1}).ok());
}

}  // namespace
}  // namespace pace
