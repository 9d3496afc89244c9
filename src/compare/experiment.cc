#include "compare/experiment.h"

#include <algorithm>
#include <filesystem>
#include <set>

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
constexpr int64_t kLargestSeed = 1'000'000'000;
constexpr size_t kMaxArms = 16;  // that a page can show

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

std::vector<Field> FieldsOf(Arm& arm) {
  return {Field::Text("name", arm.name, "Letters, digits, - _ .; by default the method."),
          Field::Text("method", arm.method, "By default the name."),
          Field::TextList("set", arm.set, "Overrides, after the method's.")};
}

std::vector<Field> FieldsOf(Claim& claim) {
  return {Field::Text("says", claim.says, "The claim in words."),
          Field::Text("value", claim.value, "A name of cell_summary.h."),
          Field::Text("of", claim.of, "An arm."),
          Field::Text("over", claim.over, "The arm that it is divided by; empty = none."),
          Field::OptionalReal("at_least", claim.at_least, "Lower bound.", "none"),
          Field::OptionalReal("at_most", claim.at_most, "Upper bound.", "none"),
          Field::OptionalReal("paper", claim.paper, "The published number.", "none"),
          Field::Text("family", claim.family, "Claims that are decided together.")};
}

// Of the block `recovered` of a claim.
std::vector<Field> RecoveredFieldsOf(Claim& claim) {
  return {Field::Text("value", claim.value, "A name of cell_summary.h."),
          Field::Text("of", claim.of, "An arm."),
          Field::Text("from", claim.from, "The arm that recovers nothing."),
          Field::Text("to", claim.to, "The arm that recovers all.")};
}

std::vector<Field> FieldsOf(Experiment& experiment) {
  return {Field::Text("title", experiment.title, "Of its page."),
          Field::Text("paper", experiment.paper, "What it stands beside."),
          Field::Text("base", experiment.base, "A preset, or a settings file."),
          Field::TextList("set", experiment.set, "Overrides of the base."),
          Field::Int("seeds", experiment.num_seeds, "Runs of each arm.")
              .AtLeast(1)
              .AtMost(static_cast<double>(kMaxSeeds)),
          Field::Int("first_seed", experiment.first_seed, "Seeds count from it.")
              .AtLeast(1)
              .AtMost(static_cast<double>(kLargestSeed)),
          Field::Text("baseline", experiment.baseline, "The arm that differences are taken to."),
          Field::Bool("groups", experiment.keep_groups, "Keep every drawn group."),
          Field::Bool("problems", experiment.keep_problems, "Keep results per problem.")};
}

Status CheckBlock(const YAML::Node& node, const std::string& owner, const std::string& name) {
  if (!node.IsMap()) return InvalidArgument(owner, ": must hold blocks").At(YamlPlace(name, node));
  return CheckKeysOnce(node, name);
}

// Reads a block {key: value, ...} of `owner`, as {name: gamma-2, method: effective}.
Status ReadBlock(const YAML::Node& node, const std::vector<Field>& fields, const std::string& owner,
                 const std::string& name) {
  PACE_RETURN_IF_ERROR(CheckBlock(node, owner, name));
  for (const auto& entry : node) {
    PACE_RETURN_IF_ERROR(SetFromYaml(fields, entry.first, entry.second, owner, name));
  }
  return Status::Ok();
}

Result<Arm> ParseArm(const YAML::Node& node, const std::string& name) {
  if (node.IsScalar()) return Arm{.name = node.Scalar(), .method = node.Scalar()};
  Arm arm;
  PACE_RETURN_IF_ERROR(ReadBlock(node, FieldsOf(arm), "arms", name));
  if (arm.name.empty()) arm.name = arm.method;
  if (arm.method.empty()) arm.method = arm.name;
  return arm;
}

Status CheckClaim(const Experiment& experiment, const Claim& claim) {
  for (const auto& [key, arm] : {std::pair("of", claim.of), std::pair("over", claim.over),
                                 std::pair("from", claim.from), std::pair("to", claim.to)}) {
    const bool may_be_empty = std::string_view(key) != "of";
    if (may_be_empty && arm.empty()) continue;
    if (experiment.FindArm(arm) == nullptr) {
      return InvalidArgument("claims.", key, " = ", Printable(arm), ": no such arm");
    }
  }
  if (claim.from.empty() != claim.to.empty() ||
      (claim.is_recovered_share() && (claim.from == claim.to || !claim.over.empty()))) {
    return InvalidArgument("claims.recovered: must name two different arms, from and to, and no ",
                           "`over`");
  }
  if (!claim.family.empty() && !claim.has_bound()) {
    return InvalidArgument("claims.family = ", Printable(claim.family),
                           ": the claim must have at_least or at_most");
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

// The list of arms or of claims.
template <typename T>
Status ParseList(const YAML::Node& list, const std::string& key, const std::string& name,
                 Result<T> (*parse)(const YAML::Node&, const std::string&), std::vector<T>& out) {
  if (!list.IsSequence()) return InvalidArgument(key, ": must be a list").At(YamlPlace(name, list));
  for (const YAML::Node& item : list) {
    PACE_ASSIGN_OR_RETURN(T one, parse(item, name));
    out.push_back(std::move(one));
  }
  return Status::Ok();
}

Result<Claim> ParseClaim(const YAML::Node& node, const std::string& name) {
  Claim claim;
  PACE_RETURN_IF_ERROR(CheckBlock(node, "claims", name));
  const std::vector<Field> fields = FieldsOf(claim);
  for (const auto& entry : node) {
    const bool recovered = entry.first.IsScalar() && entry.first.Scalar() == "recovered";
    PACE_RETURN_IF_ERROR(
        recovered ? ReadBlock(entry.second, RecoveredFieldsOf(claim), "claims.recovered", name)
                  : SetFromYaml(fields, entry.first, entry.second, "claims", name));
  }
  return claim;
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
    const std::vector<Field> fields = FieldsOf(out);
    for (const auto& entry : document) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      PACE_RETURN_IF_ERROR(key == "arms" ? ParseList(entry.second, key, name, ParseArm, out.arms)
                           : key == "claims"
                               ? ParseList(entry.second, key, name, ParseClaim, out.claims)
                               : SetFromYaml(fields, entry.first, entry.second, "", name));
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

Experiment WithOverrides(Experiment experiment, const std::vector<std::string>& overrides) {
  for (Arm& arm : experiment.arms) {
    arm.set.insert(arm.set.end(), overrides.begin(), overrides.end());
  }
  return experiment;
}

}  // namespace pace
