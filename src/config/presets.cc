#include "config/presets.h"

#include <array>

namespace pace {
namespace {

constexpr std::array<Preset, 1> kPresets = {{
    {"math-4b", "Qwen3-4B, single-turn mathematics, 4 rollout and 2 trainer GPUs.", "{}"},
}};

}  // namespace

std::span<const Preset> Presets() { return kPresets; }

const Preset* FindPreset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace pace
