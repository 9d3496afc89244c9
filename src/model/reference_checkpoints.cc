#include "model/reference_checkpoints.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "core/file.h"
#include "core/json_scanner.h"
#include "model/model_config_json.h"

namespace pace {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 26;

void Read(JsonScanner& scan, TokenId& token) {
  int64_t value = 0;
  scan.Integer(0, std::numeric_limits<TokenId>::max(), "", value);
  token = static_cast<TokenId>(value);
}
void Read(JsonScanner& scan, size_t& position) {
  int64_t value = 0;
  scan.Integer(0, std::numeric_limits<int32_t>::max(), "", value);
  position = static_cast<size_t>(value);
}
void Read(JsonScanner& scan, double& real) {
  constexpr double kMax = std::numeric_limits<double>::max();
  scan.Real(-kMax, kMax, "", real);
}
void Read(JsonScanner& scan, ReferenceCase& one);
template <typename T>
void Read(JsonScanner& scan, std::vector<T>& items) {
  scan.EnterArray();
  while (scan.NextItem()) Read(scan, items.emplace_back());
}
void Read(JsonScanner& scan, ReferenceCase& one) {
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "name") {
      scan.Text(one.name);
    } else if (scan.key() == "input_ids") {
      Read(scan, one.input_ids);
    } else if (scan.key() == "logits_positions") {
      Read(scan, one.positions);
    } else if (scan.key() == "logits") {
      Read(scan, one.logits);
    } else if (scan.key() == "greedy") {
      Read(scan, one.greedy);
    } else {
      scan.Skip();
    }
  }
}

Result<std::vector<ReferenceCase>> ReadCases(const std::string& path) {
  PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  std::vector<ReferenceCase> cases;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "cases") {
      Read(scan, cases);
    } else {
      scan.Skip();
    }
  }
  scan.End();
  if (!scan.ok()) return InvalidArgument(path, ": ", scan.status().message());
  if (cases.empty()) return InvalidArgument(path, ": cases: must not be empty");
  for (const ReferenceCase& one : cases) {
    if (one.input_ids.empty() || one.logits.empty() || one.greedy.empty()) {
      return InvalidArgument(path, ": ", one.name,
                             ": input_ids, logits and greedy: must not be missing or empty");
    }
    if (one.positions.size() != one.logits.size()) {
      return InvalidArgument(path, ": ", one.name, ": logits: must be one row for each position");
    }
  }
  return cases;
}

}  // namespace

Result<std::vector<ReferenceCheckpoint>> ReadReferenceCheckpoints(
    const std::filesystem::path& folder) {
  std::vector<ReferenceCheckpoint> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    const std::string path = entry.path().string();
    PACE_ASSIGN_OR_RETURN(ModelConfig config, ReadModelConfig(path));
    PACE_ASSIGN_OR_RETURN(WeightSet weights, WeightSet::Load(config, path));
    PACE_ASSIGN_OR_RETURN(std::vector<ReferenceCase> cases,
                          ReadCases((entry.path() / "expected.json").string()));
    all.push_back({path, std::move(config), std::move(weights), std::move(cases)});
  }
  return all;
}

}  // namespace pace
