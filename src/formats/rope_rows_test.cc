#include "formats/rope_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace pace {
namespace {

TEST(RopeRowsTest, PairsMoveToTheTwoHalvesOfTheirHead) {
  // Two heads of four rows of one value.
  const std::vector<float> interleaved = {0, 1, 2, 3, 10, 11, 12, 13};
  const std::vector<float> halves = {0, 2, 1, 3, 10, 12, 11, 13};
  EXPECT_EQ(InterleavedToHalves(interleaved, 2, 4), halves);
  EXPECT_EQ(HalvesToInterleaved(halves, 2, 4), interleaved);
}

TEST(RopeRowsTest, RowsStayWhole) {
  const std::vector<float> interleaved = {0, 1, 10, 11, 20, 21, 30, 31};
  EXPECT_EQ(InterleavedToHalves(interleaved, 1, 4),
            (std::vector<float>{0, 1, 20, 21, 10, 11, 30, 31}));
}

TEST(RopeRowsTest, ThereAndBackIsTheSame) {
  for (const int64_t head_dim : {2, 4, 6, 64}) {
    for (const int64_t num_heads : {1, 3, 9}) {
      std::vector<float> rows(static_cast<size_t>(head_dim * num_heads * 5));
      std::iota(rows.begin(), rows.end(), 0.0f);
      const std::vector<float> halves = InterleavedToHalves(rows, num_heads, head_dim);
      EXPECT_EQ(HalvesToInterleaved(halves, num_heads, head_dim), rows);
      EXPECT_EQ(halves == rows, head_dim == 2);
    }
  }
}

// The dot product of rotated q and k is what attention sees; it must not depend
// on the convention.
TEST(RopeRowsTest, RotatedDotProductsAgreeInBothOrders) {
  constexpr size_t kDim = 8;
  std::vector<float> q(kDim);
  std::vector<float> k(kDim);
  for (size_t i = 0; i < kDim; ++i) {
    q[i] = std::sin(static_cast<float>(i) + 1.0f);
    k[i] = std::cos(2.0f * static_cast<float>(i));
  }
  const auto rotate = [](std::vector<float> row, float position, bool halves) {
    for (size_t i = 0; i < kDim / 2; ++i) {
      const float angle = position * std::pow(10000.0f, -2.0f * static_cast<float>(i) / kDim);
      float& a = row[halves ? i : 2 * i];
      float& b = row[halves ? i + kDim / 2 : 2 * i + 1];
      const float rotated = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = rotated;
    }
    return row;
  };
  const auto dot = [](const std::vector<float>& left, const std::vector<float>& right) {
    return std::inner_product(left.begin(), left.end(), right.begin(), 0.0f);
  };
  const float expected = dot(rotate(q, 7, false), rotate(k, 3, false));
  const float found = dot(rotate(InterleavedToHalves(q, 1, kDim), 7, true),
                          rotate(InterleavedToHalves(k, 1, kDim), 3, true));
  EXPECT_NEAR(found, expected, 1e-5f);
  EXPECT_GT(std::fabs(dot(rotate(q, 7, true), rotate(k, 3, true)) - expected), 1e-2f);
}

}  // namespace
}  // namespace pace
