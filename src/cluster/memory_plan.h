// What a trainer rank and a rollout engine need of a GPU's memory, part by part, from the shape of
// the network and the settings alone.
//
//   const std::vector<MemoryPart> parts = RankMemory(NetworkOf(model), {.num_ranks = 4,
//                                                                       .shard =
//                                                                       ShardMode::kFull});
//   PACE_RETURN_IF_ERROR(CheckMemory("a trainer rank", parts, 80e9));
//
// A parameter has a float32 weight, two float32 moments and a float32 gradient. "Outside" are the
// embedding and the head, which all layers share; rounded copies come and go with the layer at work
// and are counted as its activations.
//
//   train.shard  weights                    gradients                              moments
//   none         whole                      whole                                  whole
//   optimizer    whole                      whole, the largest unit's twice        1/N
//   gradients    whole                      1/N, outside's, a layer's twice        1/N
//   full         1/N, outside's, a layer's  1/N, outside's, a layer's twice        1/N
//
// Thread-safety: pure functions.
#ifndef PACE_CLUSTER_MEMORY_PLAN_H_
#define PACE_CLUSTER_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "core/status.h"

namespace pace {

// Sizes that memory depends on.
struct NetworkSize {
  int64_t num_parameters = 0;
  int64_t layer_parameters = 0;  // of one layer
  int64_t layer_elements = 0;    // activations of one layer that its backward pass reads, per token
  int64_t num_layers = 0;
  int64_t hidden = 0;
  int64_t vocab = 0;
  // Parameters that belong to no layer.
  int64_t outside() const { return num_parameters - num_layers * layer_parameters; }
};
NetworkSize NetworkOf(const ModelOptions& model);

struct MemoryPart {
  std::string name = {};
  int64_t num_bytes = 0;
  std::string hint = {};  // the key that makes it smaller, if one does
};
int64_t TotalBytes(const std::vector<MemoryPart>& parts);

struct RankMemoryOptions {
  int64_t num_ranks = 1;
  ShardMode shard = ShardMode::kNone;
  bool in_bf16 = true;
  bool recompute_layers = false;
  int64_t tokens = 4096;            // of one forward pass
  bool has_initial_policy = false;  // for a KL penalty
  // Servers that get weights over NCCL: two buffers for each.
  int64_t num_servers = 0;
  int64_t transfer_bytes = 0;
};
// Of the rank that needs most: rank 0, which also has the snapshot for the engines. Without the
// CUDA context.
std::vector<MemoryPart> RankMemory(const NetworkSize& network, const RankMemoryOptions& options);
RankMemoryOptions RankMemoryOf(const Settings& settings, ShardMode shard);

// Of one GPU of an engine: weights, a KV cache for `kv_tokens` tokens, one forward pass.
std::vector<MemoryPart> EngineMemory(const Settings& settings, int64_t kv_tokens);

// CUDA's context, its libraries and their workspaces.
MemoryPart CudaContext();

// An error with the numbers where the parts do not fit.
Status CheckMemory(std::string_view who, const std::vector<MemoryPart>& parts,
                   int64_t memory_bytes);

// train.shard, if it is not none, or else the first of optimizer, gradients and full that fits GPUs
// of gpu.memory_gib; none for one rank. Refused where that does not fit.
Result<ShardMode> ChooseSharding(const Settings& settings);
// train.shard as an assignment; none for one rank.
std::optional<std::string> ShardingAssignment(const Settings& settings, ShardMode shard);

// The above for trainer and engines of a layout.
Status CheckLayoutMemory(const Settings& settings);

}  // namespace pace

#endif  // PACE_CLUSTER_MEMORY_PLAN_H_
