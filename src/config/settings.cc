#include "config/settings.h"

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

Status ApplyEntry(Settings& settings, const std::string& section, const YAML::Node& key,
                  const YAML::Node& value, const std::string& name) {
  if (!key.IsScalar()) return InvalidArgument("a key must be a word").At(YamlPlace(name, key));
  const std::string full_key = section + "." + key.Scalar();
  FieldValue given = nullptr;
  if (value.IsScalar()) {
    given = PlainText{value.Scalar()};
  } else if (value.IsSequence()) {
    std::vector<std::string> items;
    for (const YAML::Node& item : value) {
      if (!item.IsScalar()) {
        return InvalidArgument(Printable(full_key), ": a list holds words only")
            .At(YamlPlace(name, item));
      }
      items.push_back(item.Scalar());
    }
    given = std::move(items);
  } else if (!value.IsNull()) {
    return InvalidArgument(Printable(full_key), ": must be one value, not a block")
        .At(YamlPlace(name, value));
  }
  return SetField(settings, full_key, given).At(YamlPlace(name, key));
}

// A preset's settings of one loss mean nothing to another.
void DropSettingsOfOtherLoss(const std::string& loss_before, bool given, Settings& settings) {
  if (settings.train.loss != loss_before && !given) settings.train.loss_settings.clear();
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
  const std::string loss_before = settings.train.loss;
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
      const bool known = [&] {
        for (const Section& s : settings.Sections()) {
          if (s.name == section) return true;
        }
        return false;
      }();
      return (known ? InvalidArgument(section, ": must hold indented keys")
                    : UnknownKey(settings, section))
          .At(YamlPlace(name, entry.first));
    }
    PACE_RETURN_IF_ERROR(CheckKeysOnce(entry.second, name));
    const bool has_variant = section == "admission" && entry.second["variant"];
    for (const auto& item : entry.second) {
      const bool weight = item.first.IsScalar() && (item.first.Scalar() == "wait_weight" ||
                                                    item.first.Scalar() == "generation_weight");
      if (has_variant && weight) {
        return InvalidArgument("admission.", item.first.Scalar(),
                               ": admission.variant already sets it (keep one of them)")
            .At(YamlPlace(name, item.first));
      }
      PACE_RETURN_IF_ERROR(ApplyEntry(settings, section, item.first, item.second, name));
    }
  }
  const YAML::Node train = document["train"];
  const bool given = train && train.IsMap() && train["loss_settings"];
  DropSettingsOfOtherLoss(loss_before, given, settings);
  return Status::Ok();
}

}  // namespace

std::vector<Section> Settings::Sections() {
  return {
      {"run", "The run as such.", run.Fields()},
      {"batch", "What one step trains on.", batch.Fields()},
      {"supply", "How much work may be outstanding.", supply.Fields()},
      {"admission", "Which finished groups a step may train on.", admission.Fields()},
      {"pool", "Where finished groups wait.", pool.Fields()},
      {"prefix", "Which interrupted prefixes are rescored.", prefix.Fields()},
      {"model", "The shape of the network, for the cost model.", model.Fields()},
      {"gpu", "What one accelerator can do.", gpu.Fields()},
      {"cluster", "The machines and how they are used.", cluster.Fields()},
      {"workload", "What prompts and responses look like.", workload.Fields()},
      {"policy", "The model that learns.", policy.Fields()},
      {"task", "What it learns and is measured on.", task.Fields()},
      {"prompt", "How a problem becomes a prompt.", prompt.Fields()},
      {"generation", "How training responses are sampled.", generation.Fields()},
      {"tools", "Programs that responses may have run.", tools.Fields()},
      {"engine", "The rollout engines of a real run.", engine.Fields()},
      {"train", "Advantages, loss and optimizer.", train.Fields()},
      {"sft", "Supervised training.", sft.Fields()},
      {"evaluation", "How the policy is measured.", evaluation.Fields()},
      {"checkpoint", "What can be resumed.", checkpoint.Fields()},
      {"runtime", "A run on real hardware.", runtime.Fields()},
      {"record", "What a run writes down.", record.Fields()},
      {"compare", "Which methods `pace sim` runs side by side.", compare.Fields()},
  };
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
  if (prefix.max_tokens < prefix.min_tokens) {
    return InvalidArgument("prefix.max_tokens = ", prefix.max_tokens,
                           ": must be >= prefix.min_tokens = ", prefix.min_tokens);
  }
  if (generation.mean_tokens > 0 && tools.use != ToolUse::kNone) {
    return InvalidArgument("generation.mean_tokens = ", generation.mean_tokens,
                           ": must be 0 with tools.use (a prescribed length leaves no turns)");
  }
  PACE_RETURN_IF_ERROR(cluster.Validate(gpu, model));
  PACE_RETURN_IF_ERROR(workload.Validate());
  PACE_RETURN_IF_ERROR(task.Validate());
  PACE_RETURN_IF_ERROR(prompt.Validate());
  return train.Validate();
}

Status SetField(Settings& settings, std::string_view key, const FieldValue& value) {
  if (key == "admission.variant") return SetVariant(settings, value);
  if (key == "device") return SetField(settings, "policy.device", value);
  const size_t dot = key.find('.');
  for (const Section& section : settings.Sections()) {
    if (dot == std::string_view::npos || section.name != key.substr(0, dot)) continue;
    for (const Field& field : section.fields) {
      if (field.key() == key.substr(dot + 1)) return field.Set(value, key);
    }
  }
  return UnknownKey(settings, key);
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
  const std::string loss_before = settings.train.loss;
  bool given = false;
  for (const std::string& assignment : assignments) {
    PACE_RETURN_IF_ERROR(ApplyOverride(settings, assignment));
    given |= assignment.starts_with("train.loss_settings=");
  }
  DropSettingsOfOtherLoss(loss_before, given, settings);
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
  Settings defaults;
  std::string out;
  for (const Section& section : defaults.Sections()) {
    out += "## " + section.name + "\n\n" + section.doc +
           "\n\n| key | type | default | meaning |\n|---|---|---|---|\n";
    for (const Field& field : section.fields) {
      out += "| `" + section.name + "." + field.key() + "` | " + field.type() + " | `" +
             field.Get() + "` | " + field.doc() + " |\n";
    }
    out += "\n";
  }
  return out;
}

}  // namespace pace
