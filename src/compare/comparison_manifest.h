// ComparisonManifest: by which pace and where the cells of a folder were made.
//
//   PACE_ASSIGN_OR_RETURN(const ComparisonManifest manifest, ReadComparisonManifest(folder));
//   if (manifest.IsOfSameProgram(mine)) { ... }  // equal settings give equal bits
//
// Thread-safety: values and pure functions of their arguments and the disk.
#ifndef PACE_COMPARE_COMPARISON_MANIFEST_H_
#define PACE_COMPARE_COMPARISON_MANIFEST_H_

#include <string>
#include <string_view>
#include <vector>

#include "compare/experiment.h"
#include "core/status.h"

namespace pace {

inline constexpr char kComparisonManifestFile[] = "manifest.json";

// What a comparison's manifest.json says.
struct ComparisonManifest {
  std::string version = {};
  std::string commit = {};
  std::string machine = {};  // "PROCESSOR, N cores"
  std::vector<std::string> overrides = {};
  // Some cells are those of an earlier call, by another version or commit or on another kind of
  // processor, or by one that is not known.
  bool is_mixed = false;

  // Whether all cells of both are by one version and commit on one kind of processor. The number of
  // cores changes no bit. False where the commit is not known.
  bool IsOfSameProgram(const ComparisonManifest& other) const;
};

std::string ManifestToJson(const Experiment& experiment, const ComparisonManifest& manifest);
Result<ComparisonManifest> ParseComparisonManifest(std::string_view json);
// Of a folder of results.
Result<ComparisonManifest> ReadComparisonManifest(const std::string& folder);

}  // namespace pace

#endif  // PACE_COMPARE_COMPARISON_MANIFEST_H_
