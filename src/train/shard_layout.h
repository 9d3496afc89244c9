// ShardLayout: where the parameters of a network lie when ranks keep a part each.
//
// A unit is one layer, or the parameters outside of layers, which is the last. Its parameters stand
// one after the other in a flat tensor, each at a multiple of kAlignment, which is filled up to a
// multiple of the number of ranks; rank r has the r-th of as many equal parts.
//
//   const ShardLayout layout = LayOutShards(shapes, num_layers, num_ranks);
//   for (const ShardSlice& slice : layout.Slices(rank)) ...
//
// Thread-safety: plain data, pure functions.
#ifndef PACE_TRAIN_SHARD_LAYOUT_H_
#define PACE_TRAIN_SHARD_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pace {

struct ShardSlot {
  std::string name = {};
  std::vector<int64_t> shape = {};
  int64_t offset = 0;  // in its unit
  int64_t count = 0;
};

struct ShardUnit {
  std::vector<ShardSlot> slots = {};
  int64_t size = 0;
  int64_t part_size = 0;
};

// What one rank has of one parameter.
struct ShardSlice {
  size_t unit = 0;
  size_t slot = 0;
  int64_t in_part = 0;       // where it begins in the rank's part of the unit
  int64_t in_parameter = 0;  // and in the parameter, flattened
  int64_t count = 0;         // above 0
};

struct ShardLayout {
  static constexpr int64_t kAlignment = 16;  // elements

  std::vector<ShardUnit> units = {};

  std::vector<ShardSlice> Slices(int64_t rank) const;
};

// Layers are known by their names, model.layers.N.
ShardLayout LayOutShards(const std::map<std::string, std::vector<int64_t>>& shapes,
                         int64_t num_layers, int64_t num_ranks);

}  // namespace pace

#endif  // PACE_TRAIN_SHARD_LAYOUT_H_
