#include "compare/claims.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

constexpr char kClaimsYaml[] = R"(
base: tiny
seeds: 8
arms: [sync, async, effective]
claims:
  - {says: half, recovered: {value: final, of: effective, from: async, to: sync}, at_least: 0.4}
  - {says: all, recovered: {value: final, of: effective, from: async, to: sync}, at_least: 1}
  - {says: some, recovered: {value: final, of: effective, from: async, to: sync}, at_least: 0.6}
)";

// Accuracy after 20 updates of experiment `main`, seeds 1 to 8.
const std::vector<double> kSync = {0.442, 0.4485, 0.4575, 0.4465, 0.4485, 0.4535, 0.4235, 0.449};
const std::vector<double> kAsync = {0.4055, 0.3855, 0.3915, 0.3865, 0.3865, 0.3895, 0.373, 0.4015};
const std::vector<double> kPace = {0.436, 0.4275, 0.426, 0.4185, 0.4215, 0.4175, 0.3925, 0.438};

void AddCells(const std::string& arm, const std::vector<double>& accuracies,
              std::vector<Cell>& cells) {
  for (size_t i = 0; i < accuracies.size(); ++i) {
    Cell cell;
    cell.id = {arm, static_cast<int64_t>(i) + 1};
    cell.steps["time"] = {1, 2};
    cell.evaluations = {{0, 0, 0.3, 5}, {2, 2, accuracies[i], 5}};
    cells.push_back(std::move(cell));
  }
}

std::vector<Cell> Cells(const std::vector<double>& sync, const std::vector<double>& async,
                        const std::vector<double>& pace) {
  std::vector<Cell> cells;
  AddCells("sync", sync, cells);
  AddCells("async", async, cells);
  AddCells("effective", pace, cells);
  return cells;
}

Experiment Parsed(const std::string& yaml) {
  Result<Experiment> experiment = ParseExperiment(yaml, "made.yaml");
  EXPECT_TRUE(experiment.ok()) << experiment.status().message();
  return std::move(experiment).value();
}

TEST(RecoveredShareTest, HasFiellersInterval) {
  const Experiment experiment = Parsed(kClaimsYaml);
  const CellTable table(experiment, Cells(kSync, kAsync, kPace));
  const std::vector<ClaimResult> results = ExamineAll(table);
  ASSERT_TRUE(results[0].share.has_value());
  EXPECT_NEAR(results[0].share->ratio, 0.574, 1e-3);
  EXPECT_NEAR(results[0].share->low, 0.470, 1e-3);
  EXPECT_NEAR(results[0].share->high, 0.697, 1e-3);
  EXPECT_EQ(results[0].finding, ClaimFinding::kHolds);
  EXPECT_EQ(results[1].finding, ClaimFinding::kFails);
  EXPECT_EQ(results[2].finding, ClaimFinding::kUndecided);
  EXPECT_EQ(FoundText(experiment.claims[0], results[0]), "0.57 [0.47, 0.70]");
  EXPECT_EQ(MeasureText(experiment.claims[0]), "final, (effective − async) / (sync − async)");
}

// The p-value of a bound is 0.05 where the bound is an end of the interval.
TEST(RecoveredShareTest, ItsPValueAgreesWithItsInterval) {
  const Experiment experiment = Parsed(kClaimsYaml);
  const CellTable table(experiment, Cells(kSync, kAsync, kPace));
  Claim claim = experiment.claims[0];
  const RatioInterval share = *Examine(table, claim).share;
  for (const double bound : {share.low, share.high}) {
    claim.at_least = bound;
    EXPECT_NEAR(*Examine(table, claim).p_value, 0.05, 1e-4);
  }
}

TEST(RecoveredShareTest, IsUndefinedWhereTheArmsDoNotDiffer) {
  const Experiment experiment = Parsed(kClaimsYaml);
  const CellTable table(experiment, Cells({0.40, 0.41, 0.39}, {0.41, 0.39, 0.40}, {0.4, 0.5, 0.6}));
  const ClaimResult result = Examine(table, experiment.claims[0]);
  EXPECT_EQ(result.finding, ClaimFinding::kUndecided);
  EXPECT_EQ(result.p_value, 1);
  EXPECT_EQ(FoundText(experiment.claims[0], result), "undefined: sync and async do not differ");
}

TEST(RecoveredShareTest, IsUndecidedWhereARunIsCensored) {
  Experiment experiment = Parsed(kClaimsYaml);
  experiment.claims[0].value = "updates80";
  std::vector<double> async = kSync;
  async[3] = 0.31;  // never at 80 % of Sync's gain
  const CellTable table(experiment, Cells(kSync, async, kSync));
  const ClaimResult result = Examine(table, experiment.claims[0]);
  EXPECT_EQ(result.share->count, 7u);
  EXPECT_EQ(result.finding, ClaimFinding::kUndecided);
}

// One claim of each family, "close" with a bound just below its interval: by itself it holds with
// a p-value just below 0.05.
Experiment Families(const std::vector<Cell>& cells, const std::string& others) {
  const std::string head = "base: tiny\nseeds: 8\narms: [sync, async, effective]\nclaims:\n";
  const auto close = [](double bound, const std::string& family) {
    return Concat("  - {says: close, value: final, of: sync, over: effective, at_least: ", bound,
                  family, "}\n");
  };
  const Experiment plain = Parsed(head + close(1, ""));
  const Estimate found = Examine(CellTable(plain, cells), plain.claims[0]).found;
  const double bound = found.low() - 0.02 * found.half_width;
  return Parsed(head + close(bound, "") + close(bound, ", family: f") + others);
}

TEST(FamilyTest, TheSmallestPValueIsMultipliedByTheNumberOfClaims) {
  const std::vector<Cell> cells = Cells(kSync, kAsync, kPace);
  // Neither of the others can be shown, so `close` has the smallest p-value of three.
  const Experiment experiment = Families(cells, R"(
  - {says: never, value: reach, of: async, at_most: 1, family: f}
  - {says: open, recovered: {value: final, of: effective, from: async, to: sync}, at_least: 0.58,
     family: f}
)");
  const std::vector<ClaimResult> results = ExamineAll(CellTable(experiment, cells));
  EXPECT_EQ(results[0].finding, ClaimFinding::kHolds);
  EXPECT_FALSE(results[0].adjusted_p.has_value());
  EXPECT_LT(*results[0].p_value, 0.05);
  EXPECT_GT(*results[0].p_value, 0.04);
  EXPECT_EQ(results[1].finding, ClaimFinding::kUndecided);
  EXPECT_NEAR(*results[1].adjusted_p, 3 * *results[0].p_value, 1e-12);
  EXPECT_EQ(results[2].adjusted_p, 1);  // censored
  EXPECT_NE(FoundText(experiment.claims[1], results[1]).find(" in family f"), std::string::npos);
}

TEST(FamilyTest, AClaimHoldsBesideOthersThatDo) {
  const std::vector<Cell> cells = Cells(kSync, kAsync, kPace);
  const Experiment experiment = Families(
      cells,
      "  - {says: sure, value: final, of: effective, over: async, at_least: 1, family: f}\n");
  const std::vector<ClaimResult> results = ExamineAll(CellTable(experiment, cells));
  EXPECT_EQ(results[1].finding, ClaimFinding::kHolds);
  EXPECT_NEAR(*results[1].adjusted_p, *results[0].p_value, 1e-12);
  EXPECT_EQ(results[2].finding, ClaimFinding::kHolds);
  EXPECT_NEAR(*results[2].adjusted_p, 2 * *results[2].p_value, 1e-12);
}

// Runs without randomness may lie on a bound exactly.
TEST(FamilyTest, AnExactValueOnItsBoundHolds) {
  const std::vector<Cell> cells = Cells(kSync, kAsync, kPace);
  const Experiment experiment = Parsed(R"(
base: tiny
seeds: 8
arms: [sync, async, effective]
claims:
  - {says: same, value: hours, of: sync, over: async, at_least: 1, at_most: 1, family: f}
)");
  EXPECT_EQ(ExamineAll(CellTable(experiment, cells))[0].finding, ClaimFinding::kHolds);
}

}  // namespace
}  // namespace pace
