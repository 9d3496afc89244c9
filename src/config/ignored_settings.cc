#include "config/ignored_settings.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>

#include "config/presets.h"
#include "core/concat.h"
#include "core/file.h"
#include "core/printable.h"

namespace pace {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kMostKeysShown = 8;

// Of a section all keys, or one key; one that is read although its section is not.
constexpr auto kRuntimeIgnores =
    std::to_array<std::string_view>({"cluster.", "gpu.", "model.", "workload.", "change.", "sft."});
constexpr auto kLabIgnores = std::to_array<std::string_view>(
    {"runtime.", "workload.", "change.", "sft.", "engine.count", "engine.slots", "engine.urls",
     "engine.fleet", "engine.requests", "engine.server", "engine.token_file", "engine.ca_file",
     "engine.weights", "engine.transfer", "engine.transfer_mib", "engine.transfer_address",
     "engine.transfer_port"});
constexpr auto kLabReads = std::to_array<std::string_view>({"workload.tool_concurrency"});

bool Ignores(std::string_view driver, std::string_view key) {
  const auto covers = [key](std::string_view rule) {
    return rule.ends_with('.') ? key.starts_with(rule) : key == rule;
  };
  if (driver == "runtime") {
    return std::any_of(kRuntimeIgnores.begin(), kRuntimeIgnores.end(), covers);
  }
  return driver == "lab" && std::any_of(kLabIgnores.begin(), kLabIgnores.end(), covers) &&
         std::none_of(kLabReads.begin(), kLabReads.end(), covers);
}

// `section.key` of every entry of a YAML file.
std::vector<std::string> KeysOfFile(const std::string& path) {
  std::vector<std::string> keys;
  const Result<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return keys;
  try {
    const YAML::Node document = YAML::Load(*text);
    if (!document.IsMap()) return keys;
    for (const auto& section : document) {
      if (!section.first.IsScalar() || !section.second.IsMap()) continue;
      for (const auto& entry : section.second) {
        if (!entry.first.IsScalar()) continue;
        keys.push_back(Concat(section.first.Scalar(), ".", entry.first.Scalar()));
      }
    }
  } catch (const YAML::Exception&) {
    keys.clear();  // LoadSettings says what is wrong
  }
  return keys;
}

}  // namespace

std::vector<std::string> IgnoredSettings(std::string_view driver, const std::string& preset_or_path,
                                         const std::vector<std::string>& overrides) {
  std::vector<std::string> keys;
  if (FindPreset(preset_or_path) == nullptr) keys = KeysOfFile(preset_or_path);
  // A file for `pace launch` describes the cluster that it runs on.
  const bool is_launched = driver == "runtime" && std::ranges::any_of(keys, [](const auto& key) {
                             return key.starts_with("launch.");
                           });
  if (is_launched) keys.clear();
  for (const std::string& assignment : overrides) {
    keys.push_back(assignment.substr(0, assignment.find('=')));
  }
  std::vector<std::string> ignored;
  for (const std::string& key : keys) {
    const bool known = std::find(ignored.begin(), ignored.end(), key) != ignored.end();
    if (!known && Ignores(driver, key)) ignored.push_back(key);
  }
  return ignored;
}

std::string IgnoredSettingsLine(std::string_view driver, const std::vector<std::string>& keys) {
  if (keys.empty()) return "";
  std::string list;
  for (size_t i = 0; i < std::min(keys.size(), kMostKeysShown); ++i) {
    list += Concat(i == 0 ? "" : ", ", Printable(keys[i]));
  }
  if (keys.size() > kMostKeysShown) list += Concat(" and ", keys.size() - kMostKeysShown, " more");
  return Concat("--driver ", driver, " does not read ", list,
                driver == "runtime" ? ": it runs on this machine (sim and lab model a cluster)"
                                    : ": it runs on a modelled cluster");
}

}  // namespace pace
