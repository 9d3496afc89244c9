#include "cluster/decode_curve.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace pace {
namespace {

double NaiveSpan(const DecodeCurve& curve, int64_t context, int64_t iterations) {
  double sum = 0;
  for (int64_t i = 0; i < iterations; ++i) {
    sum += curve.Iteration(context);
    context += curve.batch();
  }
  return sum;
}

TEST(DecodeCurveTest, TheClosedFormEqualsTheSumOfIterations) {
  const CounterRandom random(5, 1);
  for (uint64_t trial = 0; trial < 200; ++trial) {
    const int64_t batch = 1 + static_cast<int64_t>(random.Bits(trial, 0) % 40);
    std::vector<DecodePiece> pieces = {{0, 1 + random.Uniform(trial, 1), 0}};
    for (uint64_t p = 0; p < trial % 4; ++p) {
      pieces.push_back(
          {pieces.back().begin + 1 + static_cast<int64_t>(random.Bits(trial, 10 + p) % 900),
           random.Uniform(trial, 20 + p), random.Uniform(trial, 30 + p) * 1e-3});
    }
    const DecodeCurve curve(batch, pieces);
    const int64_t context = static_cast<int64_t>(random.Bits(trial, 2) % 1500);
    const int64_t iterations = static_cast<int64_t>(random.Bits(trial, 3) % 120);
    const double naive = NaiveSpan(curve, context, iterations);
    EXPECT_NEAR(curve.Span(context, iterations), naive, 1e-9 * (1 + naive));
  }
}

TEST(DecodeCurveTest, IterationsToReachIsTheInverseOfSpan) {
  const DecodeCurve curve(7, {{0, 0.01, 1e-6}, {1000, 0.005, 6e-6}});
  for (const int64_t k : {0, 1, 5, 99, 100, 5000}) {
    const double seconds = curve.Span(30, k);
    EXPECT_EQ(curve.IterationsToReach(30, seconds, 10000), k);
    EXPECT_EQ(curve.IterationsToReach(30, seconds + 1e-9, 10000), k + 1);
  }
  EXPECT_EQ(curve.IterationsToReach(30, 1e9, 50), 50);
}

TEST(UpperEnvelopeTest, TakesTheLargerLineEverywhere) {
  const DecodePiece flat = {0, 5, 0}, steep = {0, 1, 0.01}, high = {0, 6, 0.02};
  for (const auto& [a, b] : {std::pair(flat, steep), std::pair(steep, flat), std::pair(flat, high),
                             std::pair(high, steep), std::pair(flat, flat)}) {
    const DecodeCurve curve(1, UpperEnvelope(a, b));
    for (int64_t context = 0; context < 1000; context += 7) {
      const double c = static_cast<double>(context);
      EXPECT_NEAR(curve.Iteration(context), std::max(a.base + a.slope * c, b.base + b.slope * c),
                  1e-12);
    }
  }
}

}  // namespace
}  // namespace pace
