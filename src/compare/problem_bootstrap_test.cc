#include "compare/problem_bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compare/claims.h"

namespace pace {
namespace {

constexpr char kBootstrapYaml[] = R"(
base: tiny
seeds: 8
problems: true
arms: [sync, async]
claims:
  - {says: final, value: final, of: sync}
  - {says: ratio, value: final, of: sync, over: async}
  - {says: time, value: hours, of: sync}
  - {says: never, value: reach, of: async}
)";

// `correct` of the 4 responses to each problem in the last evaluation, none in the first.
Cell BootstrapCell(const std::string& arm, int64_t seed, const std::vector<int64_t>& correct) {
  Cell cell;
  cell.id = {arm, seed};
  cell.steps["time"] = {1, 2};
  double sum = 0;
  for (const int64_t count : correct) sum += static_cast<double>(count);
  const CellEvaluation before{
      .num_responses = 4, .pass = 0, .problems = {{std::vector<int64_t>(correct.size(), 0)}}};
  const CellEvaluation after{.step = 2,
                             .time = 2,
                             .accuracy = sum / 4 / static_cast<double>(correct.size()),
                             .num_responses = 4,
                             .pass = 0,
                             .problems = {{correct}}};
  cell.evaluations = {before, after};
  return cell;
}

// Counts by seed and problem.
using Counts = std::vector<std::vector<int64_t>>;

std::vector<Cell> CountCells(const Counts& sync, const Counts& async) {
  std::vector<Cell> cells;
  for (size_t i = 0; i < sync.size(); ++i) {
    cells.push_back(BootstrapCell("sync", static_cast<int64_t>(i) + 1, sync[i]));
    cells.push_back(BootstrapCell("async", static_cast<int64_t>(i) + 1, async[i]));
  }
  return cells;
}

class ProblemBootstrapTest : public ::testing::Test {
 protected:
  ProblemBootstrapTest() : experiment_(ParseExperiment(kBootstrapYaml, "made.yaml").value()) {}

  std::vector<std::optional<Estimate>> Found(const std::vector<Cell>& cells,
                                             const BootstrapOptions& options = {}) const {
    return BootstrapOverProblems(CellTable(experiment_, cells), experiment_.claims, options);
  }

  Experiment experiment_;
};

// Every problem is solved alike: only seeds matter.
TEST_F(ProblemBootstrapTest, EqualProblemsLeaveTheIntervalOfSeeds) {
  Counts counts;
  for (const int64_t level : {1, 2, 2, 3, 3, 3, 4, 2}) {
    counts.push_back(std::vector<int64_t>(30, level));
  }
  const std::vector<Cell> cells = CountCells(counts, counts);
  const CellTable table(experiment_, cells);
  const Estimate seeds = Examine(table, experiment_.claims[0]).found;
  const std::optional<Estimate> both = Found(cells, {.num_rounds = 4000})[0];
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->mean, seeds.mean);
  EXPECT_NEAR(both->half_width, seeds.half_width, 0.05 * seeds.half_width);
}

// Every seed is the same: only problems matter, and no arm gains over itself.
TEST_F(ProblemBootstrapTest, EqualSeedsLeaveTheSpreadOfProblems) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < 100; ++i) counts.push_back(i % 5);
  const std::vector<Cell> cells = CountCells(Counts(8, counts), Counts(8, counts));
  const std::vector<std::optional<Estimate>> found = Found(cells, {.num_rounds = 4000});
  const double spread = std::sqrt(0.125 / 100);  // of the shares 0, 1/4, ..., 1
  EXPECT_NEAR(found[0]->half_width, StudentQuantile(7) * spread * std::sqrt(8.0 / 7),
              0.05 * StudentQuantile(7) * spread);
  EXPECT_NEAR(found[1]->mean, 1, 1e-12);
  EXPECT_NEAR(found[1]->half_width, 0, 1e-12);
}

TEST_F(ProblemBootstrapTest, IsTheSameEveryTime) {
  std::mt19937_64 random(1);
  Counts counts(8, std::vector<int64_t>(20));
  for (auto& seed : counts) {
    for (int64_t& count : seed) count = static_cast<int64_t>(random() % 5);
  }
  const std::vector<Cell> cells = CountCells(counts, counts);
  EXPECT_EQ(Found(cells)[0]->half_width, Found(cells)[0]->half_width);
  EXPECT_NE(Found(cells)[0]->half_width, Found(cells, {.seed = 2})[0]->half_width);
}

TEST_F(ProblemBootstrapTest, SaysNothingOfWhatItDoesNotKnow) {
  const Counts right(8, std::vector<int64_t>(20, 4));
  const Counts half(8, std::vector<int64_t>(20, 2));
  std::vector<Cell> cells = CountCells(right, half);
  const std::vector<std::optional<Estimate>> found = Found(cells);
  EXPECT_TRUE(found[0].has_value());
  EXPECT_FALSE(found[2].has_value());  // no accuracy
  EXPECT_FALSE(found[3].has_value());  // censored
  cells[3].evaluations[1].problems.clear();
  EXPECT_FALSE(Found(cells)[0].has_value());
}

// Accuracies with an effect of the seed, one of the problem and noise.
TEST_F(ProblemBootstrapTest, HoldsTheMeanAtLeastNineteenTimesInTwenty) {
  std::mt19937_64 random(17);
  std::normal_distribution<double> normal(0, 1);
  constexpr int kRounds = 200;
  int held = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> problems(40);
    for (double& effect : problems) effect = normal(random);
    Counts counts;
    for (int seed = 0; seed < 8; ++seed) {
      const double shared = 0.3 * normal(random);
      std::vector<int64_t>& row = counts.emplace_back();
      for (const double effect : problems) {
        const double level = 2 + shared + effect + 0.5 * normal(random);
        row.push_back(std::clamp<int64_t>(std::llround(level), 0, 4));
      }
    }
    const Estimate found = *Found(CountCells(counts, counts), {.num_rounds = 200})[0];
    held += found.low() <= 0.5 && 0.5 <= found.high() ? 1 : 0;  // by symmetry
  }
  EXPECT_GE(held, 186);
}

TEST_F(ProblemBootstrapTest, AWeighedProblemCountsThatOften) {
  const Counts right(8, std::vector<int64_t>(20, 4));
  const Counts half(8, std::vector<int64_t>(20, 2));
  CellTable table(experiment_, CountCells(right, half));
  EXPECT_EQ(table.NumProblems(), std::vector<size_t>{20});
  std::vector<double> weights(20, 0);
  weights[3] = 2;
  weights[4] = 1;
  table.WeighProblems({weights});
  EXPECT_DOUBLE_EQ(table.Values("async", "final")[0], 0.5);
  EXPECT_DOUBLE_EQ(table.Values("async", "pass")[0], 1);
  EXPECT_DOUBLE_EQ(table.Values("async", "base")[0], 0);
}

}  // namespace
}  // namespace pace
