#include "compare/results_page.h"

#include <gtest/gtest.h>

#include "compare/claims.h"

namespace pace {
namespace {

Cell Made(const std::string& arm, int64_t seed, double seconds) {
  Cell cell;
  cell.id = {arm, seed};
  for (const std::string_view name : kStepColumns) cell.steps[std::string(name)] = {1, 1};
  cell.steps["time/step"] = {seconds, seconds};
  return cell;
}

FinishedComparison Comparison() {
  FinishedComparison out;
  out.experiment = ParseExperiment(R"(
base: tiny
seeds: 2
arms: [sync, async]
claims:
  - {says: slower, value: step_seconds, of: sync, over: async, at_least: 3, paper: 3.7}
  - {says: faster, value: step_seconds, of: sync, over: async, at_most: 3, paper: 0.5}
  - {says: never, value: reach, of: async, paper: 0.5}
)",
                                   "made.yaml")
                       .value();
  out.cells = {Made("sync", 1, 8), Made("sync", 2, 8.2), Made("async", 1, 2), Made("async", 2, 2)};
  out.manifest = {
      .version = "1", .commit = "abc", .machine = "a \"machine\"", .overrides = {"a=b"}};
  return out;
}

TEST(ClaimsTest, StandBesideThePaperByTheSideOfOne) {
  const FinishedComparison made = Comparison();
  const CellTable table(made.experiment, made.cells);
  const auto& claims = made.experiment.claims;
  EXPECT_EQ(Examine(table, claims[0]).finding, ClaimFinding::kHolds);
  EXPECT_EQ(Examine(table, claims[0]).paper, PaperFinding::kSame);
  EXPECT_EQ(Examine(table, claims[1]).finding, ClaimFinding::kFails);
  EXPECT_EQ(Examine(table, claims[1]).paper, PaperFinding::kOpposite);
  EXPECT_EQ(Examine(table, claims[2]).finding, ClaimFinding::kReported);
  EXPECT_EQ(Examine(table, claims[2]).paper, PaperFinding::kUndecided);
}

TEST(ResultsPageTest, NamesCommandCommitAndMachine) {
  const std::string page = ResultsPage({Comparison()});
  EXPECT_NE(page.find("Produced by `pace compare made a=b`, pace 1, commit abc, on a \"machine\"."),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("| made | slower | 3.7 | 4.050 ± 0.635 | same direction | ≥ 3 | holds |"),
            std::string::npos)
      << page;
}

TEST(ResultsPageTest, AManifestReadsBackAsItWasWritten) {
  const FinishedComparison made = Comparison();
  const Result<ComparisonManifest> read =
      ParseComparisonManifest(ManifestToJson(made.experiment, made.manifest));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->commit, made.manifest.commit);
  EXPECT_EQ(read->machine, made.manifest.machine);
  EXPECT_EQ(read->overrides, made.manifest.overrides);
  EXPECT_FALSE(ParseComparisonManifest("{\"commit\":").ok());
}

}  // namespace
}  // namespace pace
