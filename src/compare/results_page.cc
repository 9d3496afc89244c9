#include "compare/results_page.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "compare/claims.h"
#include "compare/comparison.h"
#include "compare/results.h"
#include "compare/statistics.h"

namespace pace {
namespace {

constexpr std::string_view kFirst = "main";

Result<FinishedComparison> ReadComparison(const std::string& folder) {
  FinishedComparison out;
  PACE_ASSIGN_OR_RETURN(out.experiment,
                        LoadExperiment(std::filesystem::path(folder).filename().string()));
  PACE_ASSIGN_OR_RETURN(out.cells, ReadCells(Concat(folder, "/", kCellsFile)));
  PACE_ASSIGN_OR_RETURN(out.manifest, ReadComparisonManifest(folder));
  out.experiment = WithOverrides(std::move(out.experiment), out.manifest.overrides);
  return out;
}

// Every claim that has a published number or a bound.
std::string OverviewTable(const std::vector<FinishedComparison>& comparisons) {
  std::string out =
      "| experiment | claim | paper | measured | compared with the paper | bound | verdict |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const FinishedComparison& comparison : comparisons) {
    const CellTable table(comparison.experiment, comparison.cells);
    if (table.seeds().empty()) continue;
    const std::vector<ClaimResult> results = ExamineAll(table);
    for (size_t i = 0; i < results.size(); ++i) {
      const Claim& claim = comparison.experiment.claims[i];
      const ClaimResult& result = results[i];
      out += Concat("| ", comparison.experiment.name, " | ", claim.says, " | ",
                    claim.paper.has_value() ? Concat(*claim.paper) : "–", " | ",
                    FoundText(claim, result), " | ", Name(result.paper), " | ", BoundText(claim),
                    " | ", Name(result.finding), " |\n");
    }
  }
  return out;
}

// An arm of an experiment.
using ArmOf = std::pair<std::string, std::string>;

// A run, and the arms that it belongs to.
using RunKey = std::tuple<std::string, int64_t, std::string>;
std::map<RunKey, std::set<ArmOf>> ArmsByRun(const std::vector<FinishedComparison>& comparisons) {
  std::map<RunKey, std::set<ArmOf>> arms;
  for (const FinishedComparison& comparison : comparisons) {
    for (const Cell& cell : comparison.cells) {
      arms[{cell.settings_digest, cell.id.seed, cell.weights_digest}].emplace(
          comparison.experiment.name, cell.id.arm);
    }
  }
  return arms;
}

// Arms that share runs, directly or through others, with the seeds that they share.
using SharedSeeds = std::map<ArmOf, std::set<int64_t>>;
void AddShared(const std::set<ArmOf>& arms, int64_t seed, std::vector<SharedSeeds>& clusters) {
  SharedSeeds joined;
  for (const ArmOf& arm : arms) joined[arm].insert(seed);
  std::erase_if(clusters, [&](const SharedSeeds& cluster) {
    const bool meets =
        std::ranges::any_of(arms, [&cluster](const ArmOf& arm) { return cluster.contains(arm); });
    if (!meets) return false;
    for (const auto& [arm, seeds] : cluster) joined[arm].insert(seeds.begin(), seeds.end());
    return true;
  });
  clusters.push_back(std::move(joined));
}

// "1 to 4, 7"
std::string SeedsText(const std::set<int64_t>& seeds) {
  std::string out;
  for (auto first = seeds.begin(); first != seeds.end();) {
    auto last = first;
    while (std::next(last) != seeds.end() && *std::next(last) == *last + 1) ++last;
    out += Concat(out.empty() ? "" : ", ", *first);
    if (last != first) out += Concat(" to ", *last);
    first = std::next(last);
  }
  return out;
}

std::string HowItWasMade(const FinishedComparison& comparison) {
  std::string out = Concat("Produced by `pace compare ", comparison.experiment.name);
  for (const std::string& assignment : comparison.manifest.overrides) out += " " + assignment;
  out += Concat("`, pace ", comparison.manifest.version, ", commit ", comparison.manifest.commit);
  if (!comparison.manifest.machine.empty()) out += ", on " + comparison.manifest.machine;
  if (comparison.manifest.is_mixed) out += "; some cells by another commit or on another processor";
  return out + ".\n\n";
}

}  // namespace

Result<std::vector<FinishedComparison>> ReadComparisons(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  if (error) return NotFound(directory, ": cannot be read: ", error.message());
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a != kFirst, a) < std::pair(b != kFirst, b);
  });
  std::vector<FinishedComparison> out;
  for (const std::string& name : names) {
    PACE_ASSIGN_OR_RETURN(FinishedComparison comparison,
                          ReadComparison(Concat(directory, "/", name)));
    out.push_back(std::move(comparison));
  }
  return out;
}

std::string SharedRuns(const std::vector<FinishedComparison>& comparisons) {
  std::vector<SharedSeeds> clusters;
  for (const auto& [run, arms] : ArmsByRun(comparisons)) {
    if (arms.begin()->first == arms.rbegin()->first) continue;  // of one experiment
    AddShared(arms, std::get<int64_t>(run), clusters);
  }
  if (clusters.empty()) return "";
  std::ranges::sort(clusters);
  std::string out =
      "## Runs that several experiments share\n\n"
      "A seed fixes every number of a run, so experiments that contain the same arm contain the\n"
      "same runs: equal settings, seed and final weights. Each row is one set of runs; its\n"
      "results in different experiments are one result and no replication.\n\n"
      "| experiment: arm (shared seeds) |\n|---|\n";
  for (const SharedSeeds& cluster : clusters) {
    std::string row;
    for (const auto& [arm, seeds] : cluster) {
      row +=
          Concat(row.empty() ? "" : "; ", arm.first, ": ", arm.second, " (", SeedsText(seeds), ")");
    }
    out += Concat("| ", row, " |\n");
  }
  return out + "\n";
}

Result<std::string> FillFindings(std::string_view text,
                                 const std::vector<FinishedComparison>& comparisons) {
  const auto measured = [&](std::string_view experiment,
                            std::string_view says) -> std::optional<std::string> {
    for (const FinishedComparison& comparison : comparisons) {
      if (comparison.experiment.name != experiment) continue;
      const CellTable table(comparison.experiment, comparison.cells);
      const std::vector<ClaimResult> results = ExamineAll(table);
      for (size_t i = 0; i < results.size(); ++i) {
        const Claim& claim = comparison.experiment.claims[i];
        if (claim.says != says) continue;
        const std::string found = FoundText(claim, results[i]);
        return found.substr(0, found.find(", p "));  // p-values stand in the tables
      }
    }
    return std::nullopt;
  };
  std::string out;
  while (true) {
    const size_t open = text.find('{');
    const size_t close = text.find('}', open);
    out += text.substr(0, open);
    if (close == std::string_view::npos) return out;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    const size_t colon = name.find(": ");
    const auto value = colon == std::string_view::npos
                           ? std::nullopt
                           : measured(name.substr(0, colon), name.substr(colon + 2));
    if (!value.has_value()) {
      return NotFound("{", name, "}: must be {EXPERIMENT: CLAIM} with the words of a claim");
    }
    out += *value;
    text.remove_prefix(close + 1);
  }
}

std::string ResultsPage(const std::vector<FinishedComparison>& comparisons,
                        std::string_view findings) {
  std::string out =
      "# Results\n\n"
      "This page lists the results of all experiments, for readers who want to check a claim of\n"
      "the project. Continue with [experiments/PROTOCOL.md](../experiments/PROTOCOL.md) for the\n"
      "setup and with [compare.md](compare.md) for the definition of every value. `pace results`\n"
      "generates the page from the runs in `results/experiments`; no number is typed by hand.\n\n";
  out += findings;
  out +=
      "## Terms\n\n"
      "| term | meaning |\n|---|---|\n"
      "| *x* ± *h* | mean over seeds *x*, half of the 95 % interval *h* |\n"
      "| ratio, *A over B* | paired by seed |\n"
      "| *holds* | the whole interval satisfies the bound |\n"
      "| *does not hold* | the whole interval violates the bound |\n"
      "| *undecided* | neither, or some seeds have no value |\n"
      "| *n of m never reached* | n of the m runs ended below the accuracy; the mean over all runs "
      "is "
      "at least the number shown, and the claim is undecided |\n"
      "| *reported* | the claim has no bound |\n"
      "| *x* [*a*, *b*] | a recovered share with its 95 % interval (Fieller) |\n"
      "| p in family | p-value adjusted for all claims of the family (Holm); a claim of a family "
      "is "
      "decided only below 0.05 |\n"
      "| *same direction* | our interval lies entirely on the same side of 1 as the published "
      "ratio |\n"
      "| *opposite* | our interval lies entirely on the other side of 1 |\n\n"
      "## Summary of claims\n\n";
  out += OverviewTable(comparisons) + "\n" + SharedRuns(comparisons);
  for (const FinishedComparison& comparison : comparisons) {
    const CellTable table(comparison.experiment, comparison.cells);
    out += ResultsMarkdown(table) + HowItWasMade(comparison);
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace pace
