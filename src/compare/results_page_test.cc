#include "compare/results_page.h"

#include <gtest/gtest.h>

#include "compare/claims.h"

namespace pace {
namespace {

Cell PageCell(const std::string& arm, int64_t seed, double seconds) {
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
  out.cells = {PageCell("sync", 1, 8), PageCell("sync", 2, 8.2), PageCell("async", 1, 2),
               PageCell("async", 2, 2)};
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

TEST(ResultsPageTest, FindingsHoldMeasuredNumbers) {
  const std::vector<FinishedComparison> all = {Comparison()};
  const auto filled = FillFindings("Sync takes {made: slower} times as long.\n", all);
  ASSERT_TRUE(filled.ok()) << filled.status().message();
  EXPECT_EQ(*filled, "Sync takes 4.050 ± 0.635 times as long.\n");
  EXPECT_EQ(ResultsPage(all, "The findings.\n").find("The findings.") != std::string::npos, true);
  for (const char* unknown : {"{made: larger}", "{other: slower}", "{slower}"}) {
    EXPECT_EQ(FillFindings(unknown, all).status().message(),
              Concat(unknown, ": must be {EXPERIMENT: CLAIM} with the words of a claim"));
  }
}

TEST(ResultsPageTest, AManifestReadsBackAsItWasWritten) {
  const FinishedComparison made = Comparison();
  const Result<ComparisonManifest> read =
      ParseComparisonManifest(ManifestToJson(made.experiment, made.manifest));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->commit, made.manifest.commit);
  EXPECT_EQ(read->machine, made.manifest.machine);
  EXPECT_EQ(read->overrides, made.manifest.overrides);
  EXPECT_FALSE(read->is_mixed);
  ComparisonManifest mixed = made.manifest;
  mixed.is_mixed = true;
  EXPECT_TRUE(ParseComparisonManifest(ManifestToJson(made.experiment, mixed))->is_mixed);
  EXPECT_FALSE(ParseComparisonManifest("{\"commit\":").ok());
}

TEST(ResultsPageTest, AProgramIsItsVersionCommitAndProcessor) {
  const ComparisonManifest mine = {
      .version = "0.1.0", .commit = "0123456789ab", .machine = "AMD EPYC, 2 cores"};
  const auto with = [&mine](const auto& change) {
    ComparisonManifest other = mine;
    change(other);
    return other;
  };
  using Manifest = ComparisonManifest;
  EXPECT_TRUE(mine.IsOfSameProgram(mine));
  EXPECT_TRUE(mine.IsOfSameProgram(with([](Manifest& m) { m.machine = "AMD EPYC, 16 cores"; })));
  for (const Manifest& other :
       {with([](Manifest& m) { m.version = "0.2.0"; }), with([](Manifest& m) { m.commit = "ff"; }),
        with([](Manifest& m) { m.machine = "Arm Neoverse N1, 2 cores"; }),
        with([](Manifest& m) { m.is_mixed = true; })}) {
    EXPECT_FALSE(mine.IsOfSameProgram(other));
    EXPECT_FALSE(other.IsOfSameProgram(mine));
  }
  for (const Manifest& unknown : {Manifest{}, with([](Manifest& m) { m.commit = "unknown"; }),
                                  with([](Manifest& m) { m.machine = "unknown, 2 cores"; })}) {
    EXPECT_FALSE(unknown.IsOfSameProgram(unknown));
  }
}

FinishedComparison Named(const std::string& name, const std::vector<Cell>& cells) {
  FinishedComparison out = Comparison();
  out.experiment.name = name;
  out.cells = cells;
  return out;
}

Cell Digested(const std::string& arm, int64_t seed, const std::string& settings,
              const std::string& weights) {
  Cell cell = PageCell(arm, seed, 1);
  cell.settings_digest = settings;
  cell.weights_digest = weights;
  return cell;
}

TEST(ResultsPageTest, SaysOnceWhichRunsAreShared) {
  const std::vector<FinishedComparison> all = {
      Named("a", {Digested("async", 1, "s1", "w1"), Digested("async", 2, "s2", "w2"),
                  Digested("async", 3, "s3", "w3"), Digested("async", 5, "s5", "w5"),
                  Digested("sync", 1, "t1", "v1")}),
      Named("b", {Digested("plain", 1, "s1", "w1"), Digested("plain", 2, "s2", "w2"),
                  Digested("plain", 3, "s3", "other"), Digested("plain", 5, "s5", "w5")}),
      Named("c", {Digested("async", 2, "s2", "w2"), Digested("twice", 4, "u", "x"),
                  Digested("again", 4, "u", "x")})};
  const std::string text = SharedRuns(all);
  EXPECT_NE(text.find("| a: async (1 to 2, 5); b: plain (1 to 2, 5); c: async (2) |"),
            std::string::npos)
      << text;
  // Neither a run of one experiment nor two arms of the same.
  EXPECT_EQ(text.find("sync (1)"), std::string::npos) << text;
  EXPECT_EQ(text.find("twice"), std::string::npos) << text;
  const std::string page = ResultsPage(all);
  EXPECT_NE(page.find(text), std::string::npos);
  EXPECT_EQ(SharedRuns({all[0]}), "");
}

// Two sets of arms become one when a run belongs to both.
TEST(ResultsPageTest, ArmsThatShareThroughOthersAreOneSet) {
  const std::vector<FinishedComparison> all = {
      Named("a", {Digested("x", 1, "s1", "w1")}),
      Named("b", {Digested("x", 1, "s1", "w1"), Digested("x", 2, "s2", "w2")}),
      Named("c", {Digested("x", 2, "s2", "w2"), Digested("x", 3, "s0", "w0")}),
      Named("d", {Digested("x", 3, "s0", "w0")})};
  EXPECT_NE(SharedRuns(all).find("| a: x (1); b: x (1 to 2); c: x (2 to 3); d: x (3) |"),
            std::string::npos)
      << SharedRuns(all);
}

}  // namespace
}  // namespace pace
