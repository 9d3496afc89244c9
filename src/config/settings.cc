#include "config/settings.h"

#include <optional>
#include <utility>

#include "config/presets.h"
#include "config/yaml_document.h"
#include "core/file.h"
#include "core/printable.h"

namespace pace {
namespace {

// Larger files are not configuration.
constexpr size_t kMaxYamlBytes = size_t{1} << 20;
// Responses in flight at once that a run may ask memory for.
constexpr double kMaxOutstandingResponses = 1e8;

// The sections in the order they are written.
struct SectionEntry {
  std::string_view name;
  std::string_view doc;
  std::vector<Field> (*fields)(Settings&);
};
constexpr SectionEntry kSections[] = {
    {"run", "The run as such.", FieldsOf<&Settings::run>},
    {"batch", "What one step trains on.", FieldsOf<&Settings::batch>},
    {"supply", "How much work may be outstanding.", FieldsOf<&Settings::supply>},
    {"admission", "Which finished groups a step may train on.", FieldsOf<&Settings::admission>},
    {"pool", "Where finished groups wait.", FieldsOf<&Settings::pool>},
    {"prefix", "Which interrupted prefixes are rescored.", FieldsOf<&Settings::prefix>},
    {"model", "The shape of the network, for the cost model.", FieldsOf<&Settings::model>},
    {"gpu", "What one accelerator can do.", FieldsOf<&Settings::gpu>},
    {"cluster", "The machines and how they are used.", FieldsOf<&Settings::cluster>},
    {"workload", "What prompts and responses look like.", FieldsOf<&Settings::workload>},
    {"change", "What changes in the middle of a simulated run.", FieldsOf<&Settings::change>},
    {"policy", "The model that learns.", FieldsOf<&Settings::policy>},
    {"task", "What it learns and is measured on.", FieldsOf<&Settings::task>},
    {"reward", "Rewards of your own: task.verifier = python:FILE:FUNCTION.",
     FieldsOf<&Settings::reward>},
    {"prompt", "How a problem becomes a prompt.", FieldsOf<&Settings::prompt>},
    {"generation", "How training responses are sampled.", FieldsOf<&Settings::generation>},
    {"tools", "Programs that responses may have run.", FieldsOf<&Settings::tools>},
    {"engine", "The rollout engines of a real run.", FieldsOf<&Settings::engine>},
    {"train", "Advantages, loss and optimizer.", FieldsOf<&Settings::train>},
    {"sft", "Supervised training.", FieldsOf<&Settings::sft>},
    {"evaluation", "How the policy is measured.", FieldsOf<&Settings::evaluation>},
    {"checkpoint", "What can be resumed.", FieldsOf<&Settings::checkpoint>},
    {"runtime", "A run on real hardware.", FieldsOf<&Settings::runtime>},
    {"launch", "How `pace launch` starts a run on several machines.", FieldsOf<&Settings::launch>},
    {"record", "What a run writes down.", FieldsOf<&Settings::record>},
    {"compare", "Which methods `pace sim` runs side by side.", FieldsOf<&Settings::compare>},
};

const SectionEntry* FindSection(std::string_view name) {
  for (const SectionEntry& section : kSections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

// The fields of a key's section; none of an unknown one.
std::vector<Field> SectionFields(Settings& settings, std::string_view key) {
  const SectionEntry* const section = FindSection(key.substr(0, key.find('.')));
  return section == nullptr ? std::vector<Field>() : section->fields(settings);
}

// Of `section.field`, or of `section.choice.option`.
struct FoundField {
  const Field* field = nullptr;  // null: none
  std::string_view key = {};     // section.field
  std::string_view option = {};  // empty: the field itself
};
FoundField FindIn(const std::vector<Field>& fields, std::string_view key) {
  const size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {};
  const size_t second = key.find('.', dot + 1);
  const std::string_view name = key.substr(dot + 1, second - dot - 1);
  const bool has_option = second != std::string_view::npos;
  for (const Field& field : fields) {
    if (field.key() != name || (has_option && field.choice() == nullptr)) continue;
    return {&field, key.substr(0, second),
            has_option ? key.substr(second + 1) : std::string_view()};
  }
  return {};
}

// Whether a key chooses something by name. Choices come before their options.
bool IsChoice(const std::vector<Field>& fields, std::string_view key) {
  const FoundField found = FindIn(fields, key);
  return found.field != nullptr && found.field->choice() != nullptr && found.option.empty();
}

std::vector<std::string> AllKeys(Settings& settings) {
  std::vector<std::string> keys = {"preset", "device", "admission.variant"};
  for (const Section& section : settings.Sections()) {
    for (const Field& field : section.fields) keys.push_back(section.name + "." + field.key());
  }
  return keys;
}

Status UnknownKey(Settings& settings, std::string_view key) {
  return InvalidArgument("unknown key ", Printable(key),
                         " (nearest: ", Nearest(key, AllKeys(settings)),
                         "; all keys: pace config --keys)");
}

Status SetVariant(Settings& settings, const FieldValue& value) {
  std::string name;
  if (const auto* plain = std::get_if<PlainText>(&value)) name = plain->text;
  if (const auto* text = std::get_if<std::string>(&value)) name = *text;
  const auto variant = VariantFromName(name);
  if (!variant.has_value()) {
    return InvalidArgument("admission.variant = ", Printable(name),
                           ": must be one of effective (or pace), raw, generation, waiting");
  }
  settings.admission.policy = AdmissionKind::kPace;
  settings.admission.python_class.clear();
  settings.admission.wait_weight = variant->wait_weight;
  settings.admission.generation_weight = variant->generation_weight;
  return Status::Ok();
}

Status ApplyPresetNamed(Settings& settings, const std::string& name) {
  const Preset* preset = FindPreset(name);
  if (preset == nullptr) {
    std::vector<std::string> names;
    for (const Preset& known : Presets()) names.emplace_back(known.name);
    return NotFound("no preset or file named ", Printable(name),
                    " (nearest preset: ", Nearest(name, names),
                    "; all presets: pace config --list)");
  }
  return ApplyYaml(settings, preset->yaml, Concat("preset ", preset->name));
}

// The key that another name stands for.
std::string_view KeyNamed(std::string_view name) {
  return name == "tools.kind" ? "tools.use" : name;
}

// `fields` are those of the key's section.
Status SetIn(Settings& settings, const std::vector<Field>& fields, std::string_view name,
             const FieldValue& value) {
  const std::string_view key = KeyNamed(name);
  if (key == "admission.variant") return SetVariant(settings, value);
  const FoundField found = FindIn(fields, key);
  if (found.field == nullptr) return UnknownKey(settings, key);
  if (!found.option.empty()) return found.field->SetOption(found.option, value, found.key);
  const Status status = found.field->Set(value, key);
  // Peers call GRPO a loss.
  const auto* const plain = std::get_if<PlainText>(&value);
  if (status.ok() || key != "train.loss" || plain == nullptr || !AdvantageNamed(plain->text).ok()) {
    return status;
  }
  return InvalidArgument("train.loss = ", plain->text,
                         ": is an advantage here (train.advantage=", plain->text,
                         " train.loss=ppo)");
}

Status ApplySection(Settings& settings, const std::string& section, const YAML::Node& block,
                    const std::string& name) {
  PACE_RETURN_IF_ERROR(CheckKeysOnce(block, name));
  const std::vector<Field> fields = SectionFields(settings, section);
  const bool has_variant = section == "admission" && block["variant"];
  for (const bool choices : {true, false}) {
    for (const auto& item : block) {
      if (!item.first.IsScalar()) {
        return InvalidArgument("a key must be a word").At(YamlPlace(name, item.first));
      }
      const std::string& key = item.first.Scalar();
      const std::string full_key = section + "." + key;
      if (IsChoice(fields, full_key) != choices) continue;
      const std::string_view other = KeyNamed(full_key);
      if (other != full_key && block[std::string(other.substr(section.size() + 1))]) {
        return InvalidArgument(full_key, ": ", other, " already sets it (keep one of them)")
            .At(YamlPlace(name, item.first));
      }
      if (has_variant && (key == "wait_weight" || key == "generation_weight")) {
        return InvalidArgument(full_key, ": admission.variant already sets it (keep one of them)")
            .At(YamlPlace(name, item.first));
      }
      PACE_ASSIGN_OR_RETURN(const FieldValue given,
                            YamlValue(item.second, full_key, choices, name));
      PACE_RETURN_IF_ERROR(
          SetIn(settings, fields, full_key, given).At(YamlPlace(name, item.first)));
    }
  }
  return Status::Ok();
}

Status ApplyDocument(Settings& settings, const YAML::Node& document, const std::string& name) {
  if (document.IsNull()) return Status::Ok();
  if (!document.IsMap()) {
    return InvalidArgument(name, ": must hold sections, as in `supply:` and indented keys");
  }
  PACE_RETURN_IF_ERROR(CheckKeysOnce(document, name));
  // The preset comes first wherever it stands, so the file's own keys win.
  if (const YAML::Node preset = document["preset"]) {
    if (!preset.IsScalar()) {
      return InvalidArgument("preset: must be a name").At(YamlPlace(name, preset));
    }
    PACE_RETURN_IF_ERROR(ApplyPresetNamed(settings, preset.Scalar()).At(YamlPlace(name, preset)));
  }
  for (const auto& entry : document) {
    if (!entry.first.IsScalar()) {
      return InvalidArgument("a section must be a word").At(YamlPlace(name, entry.first));
    }
    const std::string& section = entry.first.Scalar();
    if (section == "preset") continue;
    if (section == "device" && entry.second.IsScalar()) {
      PACE_RETURN_IF_ERROR(SetField(settings, section, PlainText{entry.second.Scalar()})
                               .At(YamlPlace(name, entry.first)));
      continue;
    }
    if (!entry.second.IsMap()) {
      const bool known = FindSection(section) != nullptr;
      return (known ? InvalidArgument(section, ": must hold indented keys")
                    : UnknownKey(settings, section))
          .At(YamlPlace(name, entry.first));
    }
    PACE_RETURN_IF_ERROR(ApplySection(settings, section, entry.second, name));
  }
  return Status::Ok();
}

}  // namespace

std::vector<Section> Settings::Sections() {
  std::vector<Section> sections;
  for (const SectionEntry& entry : kSections) {
    sections.push_back({std::string(entry.name), std::string(entry.doc), entry.fields(*this)});
  }
  return sections;
}

Status Settings::Validate() const {
  const int64_t max_groups = supply.MaxGroups(batch.num_groups);
  const double responses = static_cast<double>(max_groups) * static_cast<double>(NumMembers());
  if (responses > kMaxOutstandingResponses) {
    return InvalidArgument("supply.threshold = ", supply.threshold,
                           ", supply.bound = ", supply.bound, ": ", responses,
                           " responses could be outstanding; must be <= ", kMaxOutstandingResponses,
                           " (lower threshold, bound, batch or sync_interval)");
  }
  if (supply.policy == SupplyKind::kCancelling && supply.bound < supply.sync_interval) {
    return InvalidArgument("supply.bound = ", supply.bound,
                           ": must be >= supply.sync_interval = ", supply.sync_interval,
                           " (or every group would be cancelled before its weights change)");
  }
  if (pool.max_groups > 0 && pool.max_groups < batch.num_groups) {
    return InvalidArgument("pool.max_groups = ", pool.max_groups,
                           ": must be 0 or >= batch.num_groups = ", batch.num_groups,
                           " (a smaller pool throws away what the batch needs)");
  }
  if (admission.cutoff == CutoffRule::kPool && admission.policy == AdmissionKind::kPaceFair) {
    return InvalidArgument(
        "admission.cutoff = pool: must be window with admission.policy = pace_fair");
  }
  if (prefix.max_tokens < prefix.min_tokens) {
    return InvalidArgument("prefix.max_tokens = ", prefix.max_tokens,
                           ": must be >= prefix.min_tokens = ", prefix.min_tokens);
  }
  if (generation.mean_tokens > 0 && tools.kind() != ToolUse::kNone) {
    return InvalidArgument("generation.mean_tokens = ", generation.mean_tokens,
                           ": must be 0 with tools.use (a prescribed length leaves no turns)");
  }
  PACE_RETURN_IF_ERROR(cluster.Validate(gpu, model));
  PACE_RETURN_IF_ERROR(workload.Validate());
  PACE_RETURN_IF_ERROR(task.Validate());
  PACE_RETURN_IF_ERROR(tools.Validate());
  PACE_RETURN_IF_ERROR(OwnRewardOf(task.verifier).status());
  PACE_RETURN_IF_ERROR(PythonNameOf("admission.policy", admission.python_class).status());
  PACE_RETURN_IF_ERROR(prompt.Validate());
  return train.Validate();
}

Status SetField(Settings& settings, std::string_view key, const FieldValue& value) {
  if (key == "device") key = "policy.device";
  return SetIn(settings, SectionFields(settings, key), key, value);
}

Status ApplyOverride(Settings& settings, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return InvalidArgument("override ", Printable(assignment), ": must be key=value");
  }
  return SetField(settings, assignment.substr(0, equals),
                  PlainText{std::string(assignment.substr(equals + 1))});
}

Status ApplyOverrides(Settings& settings, const std::vector<std::string>& assignments) {
  for (const bool choices : {true, false}) {
    for (const std::string& assignment : assignments) {
      const std::string key = assignment.substr(0, assignment.find('='));
      if (IsChoice(SectionFields(settings, key), key) != choices) continue;
      PACE_RETURN_IF_ERROR(ApplyOverride(settings, assignment));
    }
  }
  return Status::Ok();
}

Status ApplyYaml(Settings& settings, std::string_view yaml, const std::string& name) {
  if (yaml.size() > kMaxYamlBytes) {
    return InvalidArgument(name, ": larger than ", kMaxYamlBytes, " bytes");
  }
  try {
    PACE_ASSIGN_OR_RETURN(const YAML::Node document, LoadYamlDocument(yaml, name));
    return ApplyDocument(settings, document, name);
  } catch (const YAML::Exception& error) {
    return YamlError(error, name);
  }
}

Result<Settings> LoadSettings(const std::string& preset_or_path,
                              const std::vector<std::string>& overrides) {
  Settings settings;
  if (FindPreset(preset_or_path) != nullptr) {
    PACE_RETURN_IF_ERROR(ApplyPresetNamed(settings, preset_or_path));
  } else {
    if (!Files::Default().Exists(preset_or_path)) {
      return ApplyPresetNamed(settings, preset_or_path);  // names the nearest preset
    }
    PACE_ASSIGN_OR_RETURN(const std::string text, ReadFile(preset_or_path, kMaxYamlBytes));
    PACE_RETURN_IF_ERROR(ApplyYaml(settings, text, preset_or_path));
  }
  PACE_RETURN_IF_ERROR(ApplyOverrides(settings, overrides));
  PACE_RETURN_IF_ERROR(settings.Validate());
  return settings;
}

std::string ToYaml(const Settings& settings) {
  Settings copy = settings;
  std::string out;
  for (const Section& section : copy.Sections()) {
    out += section.name + ":\n";
    for (const Field& field : section.fields) {
      out += "  " + field.key() + ": " + field.Get() + "\n";
    }
  }
  return out;
}

std::string DescribeSettings() {
  constexpr char kHead[] = "\n\n| key | type | default | meaning |\n|---|---|---|---|\n";
  const auto row = [](const std::string& key, const Field& field) {
    return Concat("| `", key, "` | ", field.type(), " | `", field.Get(), "` | ", field.doc(),
                  " |\n");
  };
  Settings defaults;
  std::string out;
  for (const Section& section : defaults.Sections()) {
    std::string choices;
    out += "## " + section.name + "\n\n" + section.doc + kHead;
    for (const Field& field : section.fields) {
      const std::string key = section.name + "." + field.key();
      out += row(key, field);
      const Field::Choice* const choice = field.choice();
      for (size_t i = 0; choice != nullptr && i < choice->names.size(); ++i) {
        choice->choose(i);
        const std::vector<Field> options = choice->options();
        if (options.empty()) continue;
        choices += Concat("Options of `", key, ": ", choice->names[i], "`", kHead);
        for (const Field& option : options) choices += row(key + "." + option.key(), option);
        choices += "\n";
      }
    }
    out += "\n" + choices;
  }
  return out;
}

}  // namespace pace
