#include "train/shard_layout.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/check.h"

namespace pace {
namespace {

constexpr std::string_view kLayers = "model.layers.";

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

size_t UnitOf(std::string_view name, int64_t num_layers) {
  if (!name.starts_with(kLayers)) return static_cast<size_t>(num_layers);
  name.remove_prefix(kLayers.size());
  int64_t layer = -1;
  std::from_chars(name.data(), name.data() + name.size(), layer);
  PACE_CHECK(layer >= 0 && layer < num_layers, name, " of ", num_layers, " layers");
  return static_cast<size_t>(layer);
}

}  // namespace

ShardLayout LayOutShards(const std::map<std::string, std::vector<int64_t>>& shapes,
                         int64_t num_layers, int64_t num_ranks) {
  ShardLayout layout;
  layout.units.resize(static_cast<size_t>(num_layers) + 1);
  for (const auto& [name, shape] : shapes) {
    ShardUnit& unit = layout.units[UnitOf(name, num_layers)];
    ShardSlot& slot = unit.slots.emplace_back();
    slot.name = name;
    slot.shape = shape;
    slot.count = 1;
    for (const int64_t length : shape) slot.count *= length;
    slot.offset = unit.size;
    unit.size = RoundUp(unit.size + slot.count, ShardLayout::kAlignment);
  }
  for (ShardUnit& unit : layout.units) {
    unit.size = RoundUp(unit.size, ShardLayout::kAlignment * num_ranks);
    unit.part_size = unit.size / num_ranks;
  }
  return layout;
}

std::vector<ShardSlice> ShardLayout::Slices(int64_t rank) const {
  std::vector<ShardSlice> slices;
  for (size_t u = 0; u < units.size(); ++u) {
    const int64_t begin = rank * units[u].part_size;
    const int64_t end = begin + units[u].part_size;
    for (size_t s = 0; s < units[u].slots.size(); ++s) {
      const ShardSlot& slot = units[u].slots[s];
      const int64_t first = std::max(begin, slot.offset);
      const int64_t last = std::min(end, slot.offset + slot.count);
      if (first >= last) continue;
      slices.push_back({.unit = u,
                        .slot = s,
                        .in_part = first - begin,
                        .in_parameter = first - slot.offset,
                        .count = last - first});
    }
  }
  return slices;
}

}  // namespace pace
