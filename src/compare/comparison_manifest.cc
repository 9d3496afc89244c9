#include "compare/comparison_manifest.h"

#include "core/file.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"

namespace pace {
namespace {

constexpr size_t kMaxManifestBytes = size_t{1} << 20;
// As PaceCommit() outside a git checkout, and CpuModel().
constexpr std::string_view kUnknown = "unknown";

std::string_view ProcessorOf(std::string_view machine) {
  return machine.substr(0, machine.rfind(','));
}

}  // namespace

bool ComparisonManifest::IsOfSameProgram(const ComparisonManifest& other) const {
  const std::string_view processor = ProcessorOf(machine);
  return !is_mixed && !other.is_mixed && !commit.empty() && commit != kUnknown &&
         !processor.empty() && processor != kUnknown && version == other.version &&
         commit == other.commit && processor == ProcessorOf(other.machine);
}

std::string ManifestToJson(const Experiment& experiment, const ComparisonManifest& manifest) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Put("experiment", experiment.name);
  json.Put("version", manifest.version);
  json.Put("commit", manifest.commit);
  json.Put("machine", manifest.machine);
  json.Put("seeds", experiment.num_seeds);
  json.Put("first_seed", experiment.first_seed);
  json.Key("overrides");
  json.BeginArray();
  for (const std::string& assignment : manifest.overrides) json.Value(assignment);
  json.EndArray();
  if (manifest.is_mixed) json.Put("mixed", true);
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
    } else if (scan.key() == "mixed") {
      scan.Bool(out.is_mixed);
    } else {
      scan.Skip();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  return out;
}

Result<ComparisonManifest> ReadComparisonManifest(const std::string& folder) {
  const std::string path = Concat(folder, "/", kComparisonManifestFile);
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxManifestBytes));
  Result<ComparisonManifest> manifest = ParseComparisonManifest(text);
  if (!manifest.ok()) return manifest.status().At(path);
  return manifest;
}

}  // namespace pace
