// Presets: named starting points, each a short YAML document.
#ifndef PACE_CONFIG_PRESETS_H_
#define PACE_CONFIG_PRESETS_H_

#include <span>
#include <string_view>

namespace pace {

struct Preset {
  std::string_view name;
  std::string_view doc;  // one line
  std::string_view yaml;
};

std::span<const Preset> Presets();
// nullptr when no preset has that name.
const Preset* FindPreset(std::string_view name);

}  // namespace pace

#endif  // PACE_CONFIG_PRESETS_H_
