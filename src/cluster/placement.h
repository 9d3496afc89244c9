// Placement: which machine and which GPUs every engine and every trainer rank has, from the
// layout that the simulator reads (ClusterOptions) and nothing else.
//
//   Result<Placement> placement = PlaceOnNodes(settings.cluster);
//   placement->engines[0].node;
//
// Trainer ranks come first, one GPU each, so rank 0 is on node 0. Engines follow, each whole on
// one node.
//
// Thread-safety: pure functions.
#ifndef PACE_CLUSTER_PLACEMENT_H_
#define PACE_CLUSTER_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "config/cluster_options.h"
#include "core/status.h"

namespace pace {

struct PlacedEngine {
  int64_t node = 0;
  int64_t index_on_node = 0;               // 0 for the first engine of a node
  std::vector<int64_t> gpus_on_node = {};  // as many as cluster.tensor_parallel

  friend bool operator==(const PlacedEngine&, const PlacedEngine&) = default;
};

struct PlacedRank {
  int64_t node = 0;
  int64_t gpu = 0;

  friend bool operator==(const PlacedRank&, const PlacedRank&) = default;
};

struct Placement {
  int64_t num_nodes = 0;
  std::vector<PlacedEngine> engines = {};
  std::vector<PlacedRank> ranks = {};

  // GPUs in use on a node.
  int64_t NumGpus(int64_t node) const;
  // Machines that have a rank: nodes 0 ... n - 1.
  int64_t NumTrainerNodes() const;
};

// Refused: layout colocated, which no launcher starts, and engines larger than a machine.
Result<Placement> PlaceOnNodes(const ClusterOptions& cluster);

}  // namespace pace

#endif  // PACE_CLUSTER_PLACEMENT_H_
