#include "train/math/sort_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace pace {
namespace {

std::vector<size_t> Sorted(const std::vector<double>& values) {
  std::vector<size_t> order;
  for (size_t i = values.size(); i-- > 0;) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return LargerFirst({values[a], a}, {values[b], b}); });
  return order;
}

TEST(SortOrderTest, LargerNumbersComeFirstAndEqualOnesByIndex) {
  const std::vector<size_t> expected = {2, 1, 4, 0, 3};
  EXPECT_EQ(Sorted({-1, 3, 7, -2, 3}), expected);
}

TEST(SortOrderTest, BothZerosAreOneNumber) {
  const std::vector<size_t> expected = {0, 1, 2};
  EXPECT_EQ(Sorted({-0.0, 0.0, -0.0}), expected);
}

TEST(SortOrderTest, NumbersStayInOrderAmongNaNs) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) {
    values.push_back(i % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : (i * 37) % 101);
  }
  double before = std::numeric_limits<double>::infinity();
  for (const size_t i : Sorted(values)) {
    if (std::isnan(values[i])) continue;
    EXPECT_LE(values[i], before);
    before = values[i];
  }
}

}  // namespace
}  // namespace pace
