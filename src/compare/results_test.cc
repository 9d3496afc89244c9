#include "compare/results.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compare/claims.h"

namespace pace {
namespace {

constexpr char kYaml[] = R"(
base: tiny
seeds: 2
baseline: async
arms: [sync, async, effective]
claims:
  - {says: waits less, value: waiting, of: async, over: effective, at_least: 3}
  - {says: is slower, value: step_seconds, of: sync, over: async, at_least: 5}
  - {says: maybe, value: final, of: effective, over: async, at_least: 1.4}
  - {says: just so, value: reach, of: effective, paper: 0.529}
)";

// A run of four steps of `seconds` each, evaluated before, after two and four.
Cell Made(const std::string& arm, int64_t seed, double seconds, double waiting,
          const std::vector<double>& accuracies) {
  Cell cell;
  cell.id = {arm, seed};
  for (const std::string_view name : kStepColumns) {
    cell.steps[std::string(name)] = {0, 0, 0, 0};
  }
  cell.steps["time"] = {seconds, 2 * seconds, 3 * seconds, 4 * seconds};
  cell.steps["time/step"] = {seconds, seconds, seconds, seconds};
  cell.steps["staleness/waiting/mean"] = {0, 0, waiting, waiting};
  cell.steps["cost/tokens_generated"] = {10, 20, 30, 40};
  cell.steps["admission/offered"] = {1, 1, 1, 1};
  for (size_t i = 0; i < accuracies.size(); ++i) {
    const auto step = static_cast<int64_t>(2 * i);
    cell.evaluations.push_back({step, static_cast<double>(step) * seconds, accuracies[i], 5});
  }
  return cell;
}

class ResultsTest : public ::testing::Test {
 protected:
  ResultsTest()
      : experiment_(ParseExperiment(kYaml, "made.yaml").value()),
        cells_({Made("sync", 1, 4, 0, {0.1, 0.2, 0.4}), Made("sync", 2, 4, 0, {0.1, 0.3, 0.4}),
                Made("async", 1, 1, 8, {0.1, 0.2, 0.2}), Made("async", 2, 1, 8, {0.1, 0.1, 0.2}),
                Made("effective", 1, 1, 2, {0.1, 0.3, 0.5}),
                Made("effective", 2, 1, 2, {0.1, 0.2, 0.3}),
                Made("effective", 3, 1, 2, {0.1, 0.2, 0.3})}),
        table_(experiment_, cells_) {}

  Experiment experiment_;
  std::vector<Cell> cells_;
  CellTable table_;
};

TEST_F(ResultsTest, ComparesOnSeedsThatEveryArmHas) {
  EXPECT_EQ(table_.seeds(), (std::vector<int64_t>{1, 2}));
}

TEST_F(ResultsTest, KnowsItsValues) {
  const auto first = [&](const char* arm, const char* name) { return table_.Values(arm, name)[0]; };
  EXPECT_DOUBLE_EQ(first("sync", "base"), 0.1);
  EXPECT_DOUBLE_EQ(first("sync", "best"), 0.4);
  EXPECT_DOUBLE_EQ(first("sync", "gain"), 4);
  EXPECT_DOUBLE_EQ(first("async", "best_step"), 2);
  EXPECT_DOUBLE_EQ(first("sync", "area"), (0.15 * 2 + 0.3 * 2) / 4);
  EXPECT_DOUBLE_EQ(first("async", "waiting"), 8);
  EXPECT_DOUBLE_EQ(first("async", "hours"), 4.0 / 3600);
  // Async took 4 s: Sync was then halfway from 0.1 to 0.2, evaluated at 8 s.
  EXPECT_NEAR(first("sync", "equal_time"), 0.15, 1e-6);
  EXPECT_DOUBLE_EQ(first("effective", "equal_time"), 0.5);
  // 0.4 lies halfway between 0.3 at 2 s and 0.5 at 4 s; Sync was there at 16 s.
  EXPECT_DOUBLE_EQ(first("effective", "reach"), 3.0 / 16);
  EXPECT_TRUE(std::isnan(table_.Values("effective", "reach")[1]));
}

TEST_F(ResultsTest, ClaimsHoldFailOrStayOpen) {
  const ClaimCounts counts = CountClaims(table_);
  EXPECT_EQ(counts.hold, 1);       // 8 / 2 >= 3
  EXPECT_EQ(counts.fail, 1);       // 4 / 1 < 5
  EXPECT_EQ(counts.undecided, 1);  // 2.5 and 1.5
  const std::string text = ResultsMarkdown(table_);
  EXPECT_NE(text.find("| waits less |"), std::string::npos);
  EXPECT_NE(text.find("does not hold"), std::string::npos);
  EXPECT_NE(text.find("0.529"), std::string::npos);
  // Seed 1 is there after 3 of Sync's 16 s, seed 2 is not after 4.
  EXPECT_NE(text.find("| ≥ 0.219 (1 of 2 never reached) | reported |"), std::string::npos) << text;
}

TEST_F(ResultsTest, CountsUpdatesAndTimeToSharesOfSyncsGain) {
  const auto first = [&](const char* arm, const char* name) { return table_.Values(arm, name)[0]; };
  // Sync goes from 0.1 by 0.2 after two steps to 0.4: half of its gain is 0.25, 80 % is 0.34.
  EXPECT_DOUBLE_EQ(first("sync", "updates50"), 2.5);
  EXPECT_DOUBLE_EQ(first("sync", "time50"), 10);
  EXPECT_DOUBLE_EQ(first("effective", "updates50"), 1.5);
  EXPECT_NEAR(first("effective", "updates80"), 2.4, 1e-12);
  EXPECT_NEAR(first("effective", "time80"), 2.4, 1e-12);
  const SeedValue late = table_.SeedValues("async", "updates80")[0];
  EXPECT_TRUE(late.censored);
  EXPECT_DOUBLE_EQ(late.number, 4);
}

TEST_F(ResultsTest, AStepOfFourUpdatesCountsFour) {
  experiment_.set = {"batch.num_updates=4"};
  const CellTable table(experiment_, cells_);
  EXPECT_DOUBLE_EQ(table.Values("effective", "updates50")[0], 6);
  EXPECT_DOUBLE_EQ(table.Values("effective", "time50")[0], 1.5);
}

TEST_F(ResultsTest, AveragesAccuracyOverTheBaselinesTime) {
  // Async took 4 s; in them Sync went from 0.1 to 0.15, and PACE by 0.3 after 2 s to 0.5.
  EXPECT_DOUBLE_EQ(table_.Values("sync", "time_area")[0], 0.125);
  EXPECT_DOUBLE_EQ(table_.Values("effective", "time_area")[0], 0.3);
  EXPECT_FALSE(table_.SeedValues("effective", "time_area")[0].held);
  // Twice as fast: held at 0.5 for the last 2 s.
  cells_[4] = Made("effective", 1, 0.5, 2, {0.1, 0.3, 0.5});
  const CellTable table(experiment_, cells_);
  EXPECT_DOUBLE_EQ(table.Values("effective", "time_area")[0], (0.3 * 2 + 0.5 * 2) / 4);
  EXPECT_TRUE(table.SeedValues("effective", "time_area")[0].held);
  EXPECT_NE(ResultsMarkdown(table).find("|\n\nRuns that end before the baseline's"),
            std::string::npos);
  const Claim claim{.value = "time_area", .of = "effective", .over = "async"};
  EXPECT_NE(FoundText(claim, Examine(table, claim)).find("(last accuracy held in 1 of 2)"),
            std::string::npos);
}

TEST_F(ResultsTest, CountsTheTokensThatNoStepTrainedOn) {
  experiment_.set = {"batch.group_size=2"};
  Cell& cell = cells_[4];
  cell.steps["admission/offered"] = {3, 4, 3, 3};
  cell.steps["admission/rejected"] = {0, 1, 0, 0};
  cell.steps["selection/length_trained"] = {10, 20, 30, 40};
  cell.steps["cost/tokens_generated"] = {200, 400, 600, 800};
  cell.steps["cost/tokens_never_trained"] = {0, 40, 40, 40};
  cell.steps["train/entropy"] = {9, 9, 0.25, 0.75};
  const CellTable table(experiment_, cells_);
  const auto first = [&](const char* name) { return table.Values("effective", name)[0]; };
  // 3 groups of 2 responses in each of four steps: 600 tokens.
  EXPECT_DOUBLE_EQ(first("wasted"), 0.25);
  EXPECT_DOUBLE_EQ(first("never_trained"), 0.05);
  EXPECT_DOUBLE_EQ(first("token_seconds"), 4.0 / 600);
  EXPECT_DOUBLE_EQ(first("entropy"), 0.5);
}

// A budget that ends between two evaluations gives the accuracy on the line between them.
TEST_F(ResultsTest, EqualBudgetsEndBetweenEvaluations) {
  for (const auto& [value, column] :
       {std::pair("equal_time", "time"), std::pair("equal_gpu", "cost/gpu_time"),
        std::pair("equal_tokens", "cost/tokens_generated")}) {
    std::vector<Cell> cells = cells_;
    for (Cell& cell : cells) {
      const double unit = cell.id.arm == "async" ? 5 : 8;
      cell.steps[column] = {unit, 2 * unit, 3 * unit, 4 * unit};
    }
    // Async used 20; PACE was at 16 when it was evaluated at 0.3, at 32 with 0.5.
    const CellTable table(experiment_, cells);
    EXPECT_NEAR(table.Values("effective", value)[0], 0.3 + 4.0 / 16 * 0.2, 1e-6) << value;
  }
}

TEST_F(ResultsTest, SaysHowManyRunsReached) {
  const std::vector<SeedValue> all = {{2}, {4}};
  EXPECT_EQ(ShowArrivals(all, 1, 1), "3.0 ± 12.7 (2 of 2 reached)");
  const std::vector<SeedValue> some = {{2}, {6, true}};
  EXPECT_EQ(ShowArrivals(some, 1, 1), "≥ 4.0 (1 of 2 never reached)");
  const std::vector<SeedValue> none(2);
  EXPECT_EQ(ShowArrivals(none, 1, 1), "–");
  EXPECT_TRUE(IsArrival("reach"));
  EXPECT_FALSE(IsArrival("equal_time"));
}

// The ratio of two times is bounded from below by a censored numerator and not at all by a
// censored denominator.
TEST_F(ResultsTest, ACensoredDenominatorBoundsNothing) {
  const Claim late{.value = "reach", .of = "async", .over = "effective", .at_most = 1};
  EXPECT_EQ(FoundText(late, Examine(table_, late)), "– (2 of 2 never reached)");
  const Claim sync{.value = "reach", .of = "async", .over = "sync", .at_least = 0.1};
  EXPECT_EQ(FoundText(sync, Examine(table_, sync)), "≥ 0.250 (2 of 2 never reached)");
  EXPECT_EQ(Examine(table_, sync).finding, ClaimFinding::kUndecided);
}

// Two of three runs reach Sync's best, both in the same time: an interval over them alone
// would be sure of it.
TEST_F(ResultsTest, ACensoredSeedLeavesAClaimOpen) {
  std::vector<Cell> cells;
  for (const int64_t seed : {1, 2, 3}) {
    cells.push_back(Made("sync", seed, 4, 0, {0.1, 0.2, 0.4}));
    cells.push_back(Made("async", seed, 1, 8, {0.1, 0.2, 0.2}));
    cells.push_back(Made("effective", seed, 1, 2, {0.1, 0.3, seed < 3 ? 0.5 : 0.3}));
  }
  const CellTable table(experiment_, cells);
  const ClaimResult result =
      Examine(table, {.value = "reach", .of = "effective", .at_most = 1, .paper = 0.5});
  EXPECT_EQ(result.found.count, 2U);
  EXPECT_EQ(result.finding, ClaimFinding::kUndecided);
  EXPECT_EQ(result.paper, PaperFinding::kUndecided);
}

TEST_F(ResultsTest, MeanRunsCarryIntervalsOverSeeds) {
  const Result<std::vector<RunData>> runs = MeanRuns(table_);
  ASSERT_TRUE(runs.ok()) << runs.status().message();
  ASSERT_EQ(runs->size(), 3u);
  const RunData& effective = runs->back();
  EXPECT_EQ(effective.metrics.num_rows(), 4u);
  EXPECT_EQ(effective.evaluations.num_rows(), 3u);
  EXPECT_NEAR(*effective.evaluations.At("eval/held_out/mean@k", 2), 0.4, 1e-12);
  EXPECT_NEAR(*effective.evaluations.At("eval/held_out/mean@k_half_width", 2), 12.7062 * 0.1, 1e-3);
}

TEST_F(ResultsTest, SaysWhereSeedsBegin) {
  EXPECT_NE(ResultsMarkdown(table_).find("3 arms, 2 seeds. "), std::string::npos);
  experiment_.first_seed = 101;
  EXPECT_NE(ResultsMarkdown(table_).find("3 arms, 2 seeds from 101 on. "), std::string::npos);
}

TEST_F(ResultsTest, WithoutAWholeSeedItSaysSo) {
  const CellTable table(experiment_, {cells_[0]});
  EXPECT_TRUE(table.seeds().empty());
  EXPECT_NE(ResultsMarkdown(table).find("No seed"), std::string::npos);
  EXPECT_FALSE(MeanRuns(table).ok());
}

}  // namespace
}  // namespace pace
