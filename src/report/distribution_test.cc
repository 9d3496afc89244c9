#include "report/distribution.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace pace {
namespace {

Bins BinsOf(const Sample& sample, size_t most) {
  const Sample* const samples[] = {&sample};
  return ChooseBins(samples, most);
}

TEST(BinsTest, EveryValueFallsIntoABin) {
  const Sample sample = {0, 0.5f, 1, 3.2f, 7, 9.99f, 10};
  const Bins bins = BinsOf(sample, 12);
  EXPECT_LE(bins.count, 12u);
  const std::vector<int64_t> counts = CountInto(bins, sample);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 7);
  EXPECT_EQ(counts[bins.IndexOf(0)], 2);
}

TEST(BinsTest, AnEdgeBelongsToTheBinAboveIt) {
  const Bins bins{.lo = 0, .width = 0.1, .count = 10};
  EXPECT_EQ(bins.IndexOf(0.3), 3u);
  EXPECT_EQ(bins.IndexOf(0.7), 7u);
  EXPECT_EQ(bins.IndexOf(0.29), 2u);
  EXPECT_EQ(bins.IndexOf(-5), 0u);
  EXPECT_EQ(bins.IndexOf(99), 9u);
}

TEST(BinsTest, AFarTailDoesNotStretchThePicture) {
  Sample sample(1000, 1.0f);
  for (size_t i = 0; i < 500; ++i) sample[i] = 2.0f;
  sample[0] = 1e6f;
  const Bins bins = BinsOf(sample, 20);
  EXPECT_LT(bins.hi(), 4);
  EXPECT_TRUE(bins.open_above);
  EXPECT_EQ(CountInto(bins, sample).back(), 1 + (bins.IndexOf(2) + 1 == bins.count ? 499 : 0));
}

TEST(BinsTest, NoValuesAndEqualValuesAreFine) {
  EXPECT_EQ(CountInto(BinsOf({}, 10), {}).size(), 1u);
  const Bins zero = BinsOf(Sample(5, 0.0f), 10);
  EXPECT_EQ(CountInto(zero, Sample(5, 0.0f))[0], 5);
  const Bins negative = BinsOf({-1, -0.5f, 1}, 10);
  EXPECT_LE(negative.lo, -1);
}

TEST(KolmogorovSmirnovTest, KnowsTheTextbookCases) {
  EXPECT_EQ(KolmogorovSmirnov({1, 2, 3}, {3, 2, 1})->distance, 0);
  EXPECT_EQ(KolmogorovSmirnov({1, 2}, {3, 4})->distance, 1);
  const auto half = KolmogorovSmirnov({1, 2, 3, 4}, {3, 4, 5, 6});
  EXPECT_EQ(half->distance, 0.5);
  EXPECT_EQ(half->at, 2);
  EXPECT_FALSE(KolmogorovSmirnov({}, {1}).has_value());
}

TEST(KolmogorovSmirnovTest, TiesCountAtOnce) {
  // One value, in different amounts: the same distribution.
  EXPECT_EQ(KolmogorovSmirnov({1, 1, 1}, {1})->distance, 0);
  EXPECT_DOUBLE_EQ(KolmogorovSmirnov({0, 0, 1, 1}, {0, 1, 1, 1})->distance, 0.25);
}

TEST(CumulativeCurveTest, ClimbsFromNothingToAll) {
  Sample sample;
  for (int i = 0; i < 1000; ++i) sample.push_back(static_cast<float>(i % 100));
  const std::vector<Point> curve = CumulativeCurve(sample, 20);
  EXPECT_LE(curve.size(), 23u);
  EXPECT_EQ(curve.front().y, 0);
  EXPECT_EQ(curve.back().x, 99);
  EXPECT_EQ(curve.back().y, 1);
  for (size_t i = 1; i < curve.size(); ++i) {
    EXPECT_GE(curve[i].x, curve[i - 1].x);
    EXPECT_GT(curve[i].y, curve[i - 1].y);
  }
  const std::vector<Point> one = CumulativeCurve({5}, 20);
  EXPECT_EQ(one.back().y, 1);
}

}  // namespace
}  // namespace pace
