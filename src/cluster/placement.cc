#include "cluster/placement.h"

#include <algorithm>

namespace pace {

int64_t Placement::NumGpus(int64_t node) const {
  int64_t count = 0;
  for (const PlacedRank& rank : ranks) count += rank.node == node ? 1 : 0;
  for (const PlacedEngine& engine : engines) {
    if (engine.node == node) count += static_cast<int64_t>(engine.gpus_on_node.size());
  }
  return count;
}

int64_t Placement::NumTrainerNodes() const {
  return ranks.empty() ? 0 : ranks.back().node + 1;
}

Result<Placement> PlaceOnNodes(const ClusterOptions& cluster) {
  if (cluster.layout == Layout::kColocated) {
    return InvalidArgument(
        "cluster.layout = colocated: must be disjoint to be launched (engines and trainer have "
        "GPUs of their own; the simulator knows both)");
  }
  const int64_t per_node = cluster.gpus_per_node;
  const int64_t ways = cluster.tensor_parallel;
  if (ways > per_node) {
    return InvalidArgument("cluster.tensor_parallel = ", ways,
                           ": must be <= cluster.gpus_per_node = ", per_node,
                           " (an engine is on one machine)");
  }
  Placement placement;
  for (int64_t rank = 0; rank < cluster.trainer_gpus; ++rank) {
    placement.ranks.push_back({.node = rank / per_node, .gpu = rank % per_node});
  }
  int64_t node = placement.ranks.back().node;
  int64_t gpu = placement.ranks.back().gpu + 1;
  int64_t index = 0;
  for (int64_t i = 0; i < cluster.NumEngines(); ++i) {
    if (gpu + ways > per_node) {
      ++node;
      gpu = 0;
      index = 0;
    }
    PlacedEngine& engine = placement.engines.emplace_back();
    engine.node = node;
    engine.index_on_node = index++;
    for (int64_t way = 0; way < ways; ++way) engine.gpus_on_node.push_back(gpu++);
  }
  placement.num_nodes = node + 1;
  return placement;
}

}  // namespace pace
