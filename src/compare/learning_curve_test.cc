#include "compare/learning_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

namespace pace {
namespace {

Cell CurveCell(const std::vector<CellEvaluation>& evaluations) {
  Cell cell;
  cell.evaluations = evaluations;
  return cell;
}

const Cell& Example() {
  static const Cell cell = CurveCell({{0, 0, 0.2, 1}, {2, 10, 0.4, 1}, {4, 30, 0.3, 1}});
  return cell;
}

TEST(LearningCurveTest, JoinsEvaluationsByStraightLines) {
  const LearningCurve curve = LearningCurve::OverTime(Example());
  EXPECT_DOUBLE_EQ(curve.end(), 30);
  EXPECT_DOUBLE_EQ(curve.BestUpTo(5), 0.3);
  EXPECT_DOUBLE_EQ(curve.BestUpTo(20), 0.4);
  EXPECT_DOUBLE_EQ(curve.ArrivalAt(0.25).at, 2.5);
  EXPECT_DOUBLE_EQ(curve.ArrivalAt(0.1).at, 0);
  EXPECT_DOUBLE_EQ(curve.MeanUpTo(30), (0.3 * 10 + 0.35 * 20) / 30);
  EXPECT_DOUBLE_EQ(curve.MeanUpTo(5), 0.25);
}

TEST(LearningCurveTest, ARunThatNeverArrivesIsCensoredAtItsEnd) {
  const Arrival arrival = LearningCurve::OverUpdates(Example(), 1).ArrivalAt(0.5);
  EXPECT_TRUE(arrival.censored);
  EXPECT_DOUBLE_EQ(arrival.at, 4);
  EXPECT_FALSE(LearningCurve::OverTime(Example()).ArrivalAt(0.4).censored);
}

TEST(LearningCurveTest, AStepOfSeveralUpdatesCountsThemAll) {
  EXPECT_DOUBLE_EQ(LearningCurve::OverUpdates(Example(), 4).ArrivalAt(0.3).at, 4);
}

TEST(LearningCurveTest, ItsLastAccuracyIsHeld) {
  EXPECT_DOUBLE_EQ(LearningCurve::OverTime(Example()).MeanUpTo(40),
                   (0.3 * 10 + 0.35 * 20 + 0.3 * 10) / 40);
}

TEST(LearningCurveTest, WithoutEvaluationsThereIsNothing) {
  const LearningCurve curve = LearningCurve::OverTime(Cell());
  EXPECT_TRUE(curve.empty());
  EXPECT_TRUE(std::isnan(curve.BestUpTo(1)));
  EXPECT_TRUE(std::isnan(curve.MeanUpTo(1)));
}

// Against the curve in small steps.
TEST(LearningCurveTest, AgreesWithACurveOfManyPoints) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  constexpr int kParts = 4000;
  for (int round = 0; round < 50; ++round) {
    std::vector<CellEvaluation> evaluations = {{0, 0, uniform(random), 1}};
    for (int64_t i = 1; i < 6; ++i) {
      evaluations.push_back(
          {i, evaluations.back().time + 0.1 + uniform(random), uniform(random), 1});
    }
    const auto at = [&](double time) {
      size_t i = 1;
      while (i + 1 < evaluations.size() && evaluations[i].time < time) ++i;
      const CellEvaluation &from = evaluations[i - 1], &to = evaluations[i];
      const double part = std::min(1.0, (time - from.time) / (to.time - from.time));
      return from.accuracy + part * (to.accuracy - from.accuracy);
    };
    const LearningCurve curve = LearningCurve::OverTime(CurveCell(evaluations));
    const double end = 1.2 * uniform(random) * curve.end();
    const double wanted = uniform(random);
    double best = 0, sum = 0;
    std::optional<double> arrival;
    for (int k = 0; k < kParts; ++k) {
      const double time = end * (k + 0.5) / kParts;
      best = std::max(best, at(time));
      sum += at(time);
    }
    for (int k = 0; k <= kParts && !arrival.has_value(); ++k) {
      const double time = curve.end() * k / kParts;
      if (at(time) >= wanted) arrival = time;
    }
    EXPECT_NEAR(curve.BestUpTo(end), best, 1e-2);
    EXPECT_NEAR(curve.MeanUpTo(end), sum / kParts, 1e-4);
    // A peak between two of the small steps is seen by the curve alone.
    if (arrival.has_value()) {
      EXPECT_FALSE(curve.ArrivalAt(wanted).censored);
      EXPECT_LE(curve.ArrivalAt(wanted).at, *arrival + 1e-9);
    }
    const Arrival found = curve.ArrivalAt(wanted);
    if (found.censored) {
      EXPECT_DOUBLE_EQ(found.at, curve.end());
    } else {
      EXPECT_NEAR(at(found.at), std::max(wanted, at(0) * (found.at == 0 ? 1 : 0)), 1e-9);
    }
  }
}

}  // namespace
}  // namespace pace
