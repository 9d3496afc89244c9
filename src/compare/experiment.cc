#include "compare/experiment.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "compare/built_in_experiments.h"
#include "compare/cell_summary.h"
#include "config/methods.h"
#include "config/yaml_document.h"
#include "core/file.h"
#include "core/printable.h"

namespace pace {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 24;

constexpr char kFolder[] = "experiments";
constexpr int64_t kMaxSeeds = 1000;
constexpr size_t kMaxArms = 16;  // that a page can show

Result<std::string> Word(const YAML::Node& node, std::string_view key, const std::string& name) {
  if (!node.IsScalar())
    return InvalidArgument(key, ": must be one value").At(YamlPlace(name, node));
  return node.Scalar();
}

Result<std::vector<std::string>> Words(const YAML::Node& node, std::string_view key,
                                       const std::string& name) {
  if (!node.IsSequence()) return InvalidArgument(key, ": must be a list").At(YamlPlace(name, node));
  std::vector<std::string> out;
  for (const YAML::Node& item : node) {
    PACE_ASSIGN_OR_RETURN(std::string word, Word(item, key, name));
    out.push_back(std::move(word));
  }
  return out;
}

Result<double> Number(const YAML::Node& node, std::string_view key, const std::string& name) {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value)) {
    return InvalidArgument(key, ": must be a number").At(YamlPlace(name, node));
  }
  return value;
}

// A name becomes part of file names and tables.
Status CheckName(const std::string& arm) {
  const bool plain =
      !arm.empty() && arm.size() <= 40 && std::all_of(arm.begin(), arm.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
      });
  if (plain) return Status::Ok();
  return InvalidArgument("arm ", Printable(arm), ": must be 1 to 40 letters, digits, - _ .");
}

Result<Arm> ParseArm(const YAML::Node& node, const std::string& name) {
  Arm arm;
  if (node.IsScalar()) {
    arm.name = arm.method = node.Scalar();
    return arm;
  }
  if (!node.IsMap())
    return InvalidArgument("arms: a word or {name, method, set}").At(YamlPlace(name, node));
  PACE_RETURN_IF_ERROR(CheckKeysOnce(node, name));
  for (const auto& entry : node) {
    const std::string key = entry.first.Scalar();
    if (key == "set") {
      PACE_ASSIGN_OR_RETURN(arm.set, Words(entry.second, "set", name));
      continue;
    }
    PACE_ASSIGN_OR_RETURN(std::string word, Word(entry.second, key, name));
    if (key == "name") {
      arm.name = std::move(word);
    } else if (key == "method") {
      arm.method = std::move(word);
    } else {
      return InvalidArgument("arms: unknown key ", Printable(key), " (name, method, set)")
          .At(YamlPlace(name, entry.first));
    }
  }
  if (arm.name.empty()) arm.name = arm.method;
  if (arm.method.empty()) arm.method = arm.name;
  return arm;
}

Result<Claim> ParseClaim(const YAML::Node& node, const std::string& name) {
  if (!node.IsMap())
    return InvalidArgument("claims: must be {says, value, of, ...}").At(YamlPlace(name, node));
  PACE_RETURN_IF_ERROR(CheckKeysOnce(node, name));
  Claim claim;
  for (const auto& entry : node) {
    const std::string key = entry.first.Scalar();
    std::optional<double>* const number = key == "at_least"  ? &claim.at_least
                                          : key == "at_most" ? &claim.at_most
                                          : key == "paper"   ? &claim.paper
                                                             : nullptr;
    if (number != nullptr) {
      PACE_ASSIGN_OR_RETURN(const double value, Number(entry.second, key, name));
      *number = value;
      continue;
    }
    std::string* const text = key == "says"    ? &claim.says
                              : key == "value" ? &claim.value
                              : key == "of"    ? &claim.of
                              : key == "over"  ? &claim.over
                                               : nullptr;
    if (text == nullptr) {
      return InvalidArgument("claims: unknown key ", Printable(key),
                             " (says, value, of, over, at_least, at_most, paper)")
          .At(YamlPlace(name, entry.first));
    }
    PACE_ASSIGN_OR_RETURN(std::string word, Word(entry.second, key, name));
    *text = std::move(word);
  }
  return claim;
}

Status CheckClaim(const Experiment& experiment, const Claim& claim) {
  if (experiment.FindArm(claim.of) == nullptr) {
    return InvalidArgument("claims.of = ", Printable(claim.of), ": no such arm");
  }
  if (!claim.over.empty() && experiment.FindArm(claim.over) == nullptr) {
    return InvalidArgument("claims.over = ", Printable(claim.over), ": no such arm");
  }
  if (!IsCellValue(claim.value)) {
    return InvalidArgument("claims.value = ", Printable(claim.value), ": must be one of ",
                           CellValueNames());
  }
  return Status::Ok();
}

Status Check(const Experiment& experiment) {
  if (experiment.base.empty())
    return InvalidArgument("base: a preset or settings file must be given");
  if (experiment.arms.empty() || experiment.arms.size() > kMaxArms) {
    return InvalidArgument("arms: must be 1 to ", kMaxArms, ", not ", experiment.arms.size());
  }
  std::set<std::string> names;
  for (const Arm& arm : experiment.arms) {
    PACE_RETURN_IF_ERROR(CheckName(arm.name));
    if (!names.insert(arm.name).second)
      return InvalidArgument("arms: ", arm.name, " is there twice");
  }
  if (!experiment.baseline.empty() && !names.contains(experiment.baseline)) {
    return InvalidArgument("baseline = ", Printable(experiment.baseline), ": no such arm");
  }
  for (const Claim& claim : experiment.claims) PACE_RETURN_IF_ERROR(CheckClaim(experiment, claim));
  return Status::Ok();
}

Status ApplyKey(Experiment& out, const std::string& key, const YAML::Node& value,
                const std::string& name) {
  if (key == "arms" || key == "claims") {
    if (!value.IsSequence())
      return InvalidArgument(key, ": must be a list").At(YamlPlace(name, value));
    for (const YAML::Node& item : value) {
      if (key == "arms") {
        PACE_ASSIGN_OR_RETURN(Arm arm, ParseArm(item, name));
        out.arms.push_back(std::move(arm));
      } else {
        PACE_ASSIGN_OR_RETURN(Claim claim, ParseClaim(item, name));
        out.claims.push_back(std::move(claim));
      }
    }
    return Status::Ok();
  }
  if (key == "set") {
    PACE_ASSIGN_OR_RETURN(out.set, Words(value, key, name));
    return Status::Ok();
  }
  if (key == "seeds") {
    PACE_ASSIGN_OR_RETURN(const double number, Number(value, key, name));
    if (!(number >= 1 && number <= kMaxSeeds)) {
      return InvalidArgument("seeds: must be 1 to ", kMaxSeeds).At(YamlPlace(name, value));
    }
    out.num_seeds = static_cast<int64_t>(number);
    return Status::Ok();
  }
  if (key == "groups") {
    if (!value.IsScalar() || !YAML::convert<bool>::decode(value, out.keep_groups)) {
      return InvalidArgument("groups: must be true or false").At(YamlPlace(name, value));
    }
    return Status::Ok();
  }
  std::string* const text = key == "title"      ? &out.title
                            : key == "paper"    ? &out.paper
                            : key == "base"     ? &out.base
                            : key == "baseline" ? &out.baseline
                                                : nullptr;
  if (text == nullptr) {
    return InvalidArgument("unknown key ", Printable(key),
                           " (title, paper, base, set, seeds, baseline, groups, arms, claims)")
        .At(YamlPlace(name, value));
  }
  PACE_ASSIGN_OR_RETURN(std::string word, Word(value, key, name));
  *text = std::move(word);
  return Status::Ok();
}

std::string KnownExperiments() {
  std::set<std::string> names;
  for (const BuiltInExperiment& known : BuiltInExperiments()) names.emplace(known.name);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, error)) {
    if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
  }
  std::string out = "there are:";
  for (const std::string& name : names) out += " " + name;
  return out;
}

}  // namespace

const Arm* Experiment::FindArm(std::string_view arm) const {
  for (const Arm& candidate : arms) {
    if (candidate.name == arm) return &candidate;
  }
  return nullptr;
}

Result<Experiment> ParseExperiment(std::string_view yaml, const std::string& name) {
  Experiment out;
  try {
    PACE_ASSIGN_OR_RETURN(const YAML::Node document, LoadYamlDocument(yaml, name));
    if (!document.IsMap()) return InvalidArgument(name, ": must hold title, base, arms");
    PACE_RETURN_IF_ERROR(CheckKeysOnce(document, name));
    for (const auto& entry : document) {
      if (!entry.first.IsScalar()) return InvalidArgument("a key must be a word").At(name);
      PACE_RETURN_IF_ERROR(ApplyKey(out, entry.first.Scalar(), entry.second, name));
    }
  } catch (const YAML::Exception& error) {
    return YamlError(error, name);
  }
  out.name = std::filesystem::path(name).stem().string();
  PACE_RETURN_IF_ERROR(Check(out).At(name));
  return out;
}

Result<Experiment> LoadExperiment(const std::string& name_or_path) {
  std::string path = name_or_path;
  if (Files::Default().Stat(path).kind != FileKind::kRegular) {
    path = Concat(kFolder, "/", name_or_path, ".yaml");
  }
  const Result<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) {
    for (const BuiltInExperiment& known : BuiltInExperiments()) {
      if (known.name == name_or_path) return ParseExperiment(known.yaml, name_or_path);
    }
    return NotFound(Printable(name_or_path), ": neither a file nor an experiment (",
                    KnownExperiments(), ")");
  }
  return ParseExperiment(*text, path);
}

Result<Settings> SettingsOf(const Experiment& experiment, const CellId& cell,
                            const std::vector<std::string>& overrides) {
  const Arm* const arm = experiment.FindArm(cell.arm);
  if (arm == nullptr) return NotFound("arm ", Printable(cell.arm), ": not in ", experiment.name);
  Result<Settings> base = LoadSettings(experiment.base, experiment.set);
  if (!base.ok()) return base.status().At(experiment.name);
  Result<Settings> settings = ApplyMethod(*base, arm->method);
  if (!settings.ok()) return settings.status().At(Concat(experiment.name, ", arm ", arm->name));
  for (const auto* list : {&arm->set, &overrides}) {
    PACE_RETURN_IF_ERROR(ApplyOverrides(*settings, *list).At(Concat("arm ", arm->name)));
  }
  settings->run.seed = cell.seed;
  PACE_RETURN_IF_ERROR(settings->Validate().At(Concat("arm ", arm->name)));
  return settings;
}

}  // namespace pace
