// The page docs/results.md: the findings in words, what the paper says and what was found, then
// every comparison that was run, one after the other.
//
//   Result<std::vector<FinishedComparison>> all = ReadComparisons("results/experiments");
//   std::string page = ResultsPage(*all);
//
// Thread-safety: pure functions of their arguments and the disk.
#ifndef PACE_COMPARE_RESULTS_PAGE_H_
#define PACE_COMPARE_RESULTS_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "compare/cell.h"
#include "compare/comparison_manifest.h"
#include "compare/experiment.h"
#include "core/status.h"

namespace pace {

struct FinishedComparison {
  Experiment experiment = {};
  std::vector<Cell> cells = {};
  ComparisonManifest manifest = {};
};

// One per folder of `directory`, by name, `main` first. Each is the results of the
// experiment of its name.
Result<std::vector<FinishedComparison>> ReadComparisons(const std::string& directory);

// Which arms of different experiments are the same runs: equal settings, seed and final weights.
// Empty where there are none.
std::string SharedRuns(const std::vector<FinishedComparison>& comparisons);

// A text in which {EXPERIMENT: CLAIM} stands for what was measured of the claim with these words.
// A claim that no comparison has is an error.
Result<std::string> FillFindings(std::string_view text,
                                 const std::vector<FinishedComparison>& comparisons);

// `findings` comes first, above the tables.
std::string ResultsPage(const std::vector<FinishedComparison>& comparisons,
                        std::string_view findings = "");

}  // namespace pace

#endif  // PACE_COMPARE_RESULTS_PAGE_H_
