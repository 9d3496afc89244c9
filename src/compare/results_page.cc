#include "compare/results_page.h"

#include <algorithm>
#include <filesystem>

#include "compare/claims.h"
#include "compare/comparison.h"
#include "compare/results.h"
#include "compare/statistics.h"
#include "core/file.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"

namespace pace {
namespace {

constexpr std::string_view kFirst = "main";
constexpr size_t kMaxManifestBytes = size_t{1} << 20;

Result<FinishedComparison> ReadComparison(const std::string& folder) {
  FinishedComparison out;
  PACE_ASSIGN_OR_RETURN(out.experiment,
                        LoadExperiment(std::filesystem::path(folder).filename().string()));
  PACE_ASSIGN_OR_RETURN(out.cells, ReadCells(Concat(folder, "/", kCellsFile)));
  PACE_ASSIGN_OR_RETURN(const std::string text,
                        ReadFile(folder + "/manifest.json", kMaxManifestBytes));
  Result<ComparisonManifest> manifest = ParseComparisonManifest(text);
  if (!manifest.ok()) return manifest.status().At(folder + "/manifest.json");
  out.manifest = std::move(manifest).value();
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
    for (const Claim& claim : comparison.experiment.claims) {
      const ClaimResult result = Examine(table, claim);
      out += Concat("| ", comparison.experiment.name, " | ", claim.says, " | ",
                    claim.paper.has_value() ? Concat(*claim.paper) : "–", " | ",
                    FoundText(table, result), " | ", Name(result.paper), " | ", BoundText(claim),
                    " | ", Name(result.finding), " |\n");
    }
  }
  return out;
}

std::string HowItWasMade(const FinishedComparison& comparison) {
  std::string out = Concat("Produced by `pace compare ", comparison.experiment.name);
  for (const std::string& assignment : comparison.manifest.overrides) out += " " + assignment;
  out += Concat("`, pace ", comparison.manifest.version, ", commit ", comparison.manifest.commit);
  if (!comparison.manifest.machine.empty()) out += ", on " + comparison.manifest.machine;
  return out + ".\n\n";
}

}  // namespace

std::string ManifestToJson(const Experiment& experiment, const ComparisonManifest& manifest) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("experiment", experiment.name);
  json.Put("version", manifest.version);
  json.Put("commit", manifest.commit);
  json.Put("machine", manifest.machine);
  json.Put("seeds", experiment.num_seeds);
  json.Key("overrides");
  json.BeginArray();
  for (const std::string& assignment : manifest.overrides) json.Value(assignment);
  json.EndArray();
  json.EndObject();
  return out + "\n";
}

Result<ComparisonManifest> ParseComparisonManifest(std::string_view text) {
  JsonScanner scan(text);
  ComparisonManifest out;
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "version") {
      scan.Text(out.version);
    } else if (scan.key() == "commit") {
      scan.Text(out.commit);
    } else if (scan.key() == "machine") {
      scan.Text(out.machine);
    } else if (scan.key() == "overrides") {
      scan.EnterArray();
      while (scan.NextItem()) scan.Text(out.overrides.emplace_back());
    } else {
      scan.Skip();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  return out;
}

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

std::string ResultsPage(const std::vector<FinishedComparison>& comparisons) {
  std::string out =
      "# Results\n\n"
      "This page lists the results of all experiments, for readers who want to check a claim of\n"
      "the project. Continue with [experiments/PROTOCOL.md](../experiments/PROTOCOL.md) for the\n"
      "setup and with [compare.md](compare.md) for the definition of every value. `pace results`\n"
      "generates the page from the runs in `results/experiments`; no number is typed by hand.\n\n"
      "| term | meaning |\n|---|---|\n"
      "| *x* ± *h* | mean over seeds *x*, half of the 95 % interval *h* |\n"
      "| ratio, *A over B* | paired by seed |\n"
      "| *holds* | the whole interval satisfies the bound |\n"
      "| *does not hold* | the whole interval violates the bound |\n"
      "| *undecided* | neither, or some seeds have no value |\n"
      "| *reported* | the claim has no bound |\n"
      "| *same direction* | our interval lies entirely on the same side of 1 as the published "
      "ratio |\n"
      "| *opposite* | our interval lies entirely on the other side of 1 |\n\n"
      "## Summary of claims\n\n";
  out += OverviewTable(comparisons) + "\n";
  for (const FinishedComparison& comparison : comparisons) {
    const CellTable table(comparison.experiment, comparison.cells);
    out += ResultsMarkdown(table) + HowItWasMade(comparison);
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace pace
