#include "cluster/memory_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cluster/model_shape.h"

namespace pace {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;
constexpr int64_t kContextBytes = int64_t{1536} << 20;
// Blocks of LibTorch's allocator that fit nothing.
constexpr double kFragmentShare = 0.06;
// As train/policy_scores.cc cuts logits.
constexpr int64_t kChunkElements = int64_t{1} << 28;

std::string Gibibytes(int64_t num_bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", static_cast<double>(num_bytes) / kGibibyte);
  return text;
}

int64_t MemoryBytes(const GpuOptions& gpu) {
  return static_cast<int64_t>(gpu.memory_gib * kGibibyte);
}

int64_t CeilDivide(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

MemoryPart Activations(const NetworkSize& network, const RankMemoryOptions& options) {
  const int64_t width = options.in_bf16 ? 2 : 4;
  // The layer at work also has its gradients.
  int64_t elements = 2 * network.layer_elements;
  elements +=
      network.num_layers * (options.recompute_layers ? network.hidden : network.layer_elements);
  const int64_t rows = std::min(options.tokens, kChunkElements / network.vocab + 16);
  // A chunk of logits in float32 and its gradient; the head rounded, and its gradient.
  const int64_t logits =
      rows * network.vocab * (4 + width) + network.vocab * network.hidden * (4 + width);
  // Layers keep their weights as they used them: the one that is computed again, or all of them.
  const int64_t rounded =
      !options.in_bf16
          ? 0
          : width * (options.recompute_layers ? network.layer_parameters : network.num_parameters);
  return {"activations", options.tokens * elements * width + logits + rounded,
          options.recompute_layers ? "train.token_budget" : "train.recompute_layers=true"};
}

}  // namespace

NetworkSize NetworkOf(const ModelOptions& model) {
  const auto whole = static_cast<int64_t>(NumParameters(model));
  ModelOptions shorter = model;
  shorter.num_layers = 0;
  const auto rest = static_cast<int64_t>(NumParameters(shorter));
  const int64_t qkv = (model.num_heads + 2 * model.num_kv_heads) * model.head_dim;
  const int64_t mlp = model.num_experts > 0
                          ? model.experts_per_token * (3 * model.expert_ffn + 2 * model.hidden)
                          : 3 * model.ffn;
  return {.num_parameters = whole,
          .layer_parameters = (whole - rest) / model.num_layers,
          // Two norms and two sums; heads as they come, turned and attended; gates and ups.
          .layer_elements = 4 * model.hidden + 3 * qkv + mlp,
          .num_layers = model.num_layers,
          .hidden = model.hidden,
          .vocab = model.vocab};
}

int64_t TotalBytes(const std::vector<MemoryPart>& parts) {
  int64_t sum = 0;
  for (const MemoryPart& part : parts) sum += part.num_bytes;
  return sum;
}

std::vector<MemoryPart> RankMemory(const NetworkSize& network, const RankMemoryOptions& options) {
  const int64_t count = network.num_parameters;
  const int64_t width = options.in_bf16 ? 2 : 4;
  const bool sharded = options.shard != ShardMode::kNone && options.num_ranks > 1;
  const int64_t own = sharded ? CeilDivide(count, options.num_ranks) : count;
  const int64_t layer = network.layer_parameters;
  const int64_t outside = network.outside();
  const bool is_full = sharded && options.shard == ShardMode::kFull;
  const bool cuts_gradients = is_full || (sharded && options.shard == ShardMode::kGradients);
  const int64_t weights = is_full ? own + outside + layer : count;
  int64_t gradients = count;
  // Summed with those of the other ranks from a copy, which is gone when the next is made.
  if (sharded) gradients += std::max(layer, outside);
  if (cuts_gradients) gradients = own + outside + std::max(2 * layer, outside);
  const char* const hint =
      is_full || options.num_ranks == 1 ? "cluster.trainer_gpus" : "train.shard";
  std::vector<MemoryPart> parts = {{"weights", 4 * weights, hint},
                                   {"moments", 8 * own, hint},
                                   {"gradients", 4 * gradients, hint}};
  parts.push_back(Activations(network, options));
  parts.push_back({"snapshot for engines", width * count});
  if (options.has_initial_policy) {
    parts.push_back({"initial policy", 4 * own, "train.kl_coef"});
  }
  if (options.num_servers > 0) {
    // A piece ends with a whole tensor. What is gathered from ranks passes through the host, so
    // that the embedding needs room, too.
    const int64_t tensor = is_full ? outside : layer / 2;
    parts.push_back({"buffers for servers",
                     2 * options.num_servers * (options.transfer_bytes + width * tensor),
                     "engine.transfer"});
  }
  parts.push_back(
      {"fragments", static_cast<int64_t>(kFragmentShare * static_cast<double>(TotalBytes(parts)))});
  return parts;
}

RankMemoryOptions RankMemoryOf(const Settings& settings, ShardMode shard) {
  const bool sends = settings.engine.transfer == WeightTransfer::kNccl;
  return {.num_ranks = settings.cluster.TrainingGpus(),
          .shard = shard,
          .in_bf16 = settings.policy.compute == ComputeType::kBfloat16,
          .recompute_layers = settings.train.recompute_layers,
          .tokens = settings.train.token_budget,
          .has_initial_policy = settings.train.kl.active(),
          .num_servers = sends ? settings.cluster.NumEngines() : 0,
          .transfer_bytes = settings.engine.transfer_mib << 20};
}

std::vector<MemoryPart> EngineMemory(const Settings& settings, int64_t kv_tokens) {
  const ModelOptions& model = settings.model;
  const NetworkSize network = NetworkOf(model);
  const double ways = static_cast<double>(settings.cluster.tensor_parallel);
  const int64_t rows = std::max(settings.engine.pass_tokens, settings.cluster.slots);
  const auto share = [ways](double bytes) { return static_cast<int64_t>(std::ceil(bytes / ways)); };
  return {{"weights", share(WeightBytes(model)), "cluster.tensor_parallel"},
          {"KV cache", share(KvBytesPerToken(model) * static_cast<double>(kv_tokens)),
           "generation.max_tokens"},
          {"a forward pass",
           share(4.0 * static_cast<double>(rows * (network.layer_elements + network.vocab))),
           "cluster.slots"}};
}

MemoryPart CudaContext() {
  return {"CUDA", kContextBytes};
}

Status CheckMemory(std::string_view who, const std::vector<MemoryPart>& parts,
                   int64_t memory_bytes) {
  if (TotalBytes(parts) <= memory_bytes) return Status::Ok();
  std::string text, advice;
  std::vector<std::string> hints;
  for (const MemoryPart& part : parts) {
    text += Concat(text.empty() ? "" : ", ", part.name, " ", Gibibytes(part.num_bytes));
    if (part.hint.empty() || std::ranges::find(hints, part.hint) != hints.end()) continue;
    hints.push_back(part.hint);
    advice += Concat(advice.empty() ? "" : ", ", part.hint);
  }
  return InvalidArgument(who, " needs ", Gibibytes(TotalBytes(parts)), " GiB, a GPU has ",
                         Gibibytes(memory_bytes), " (", text, "; see ", advice, ")");
}

Result<ShardMode> ChooseSharding(const Settings& settings) {
  const bool alone = settings.cluster.TrainingGpus() == 1;
  std::vector<ShardMode> candidates =
      alone ? std::vector{ShardMode::kNone}
            : std::vector{ShardMode::kOptimizer, ShardMode::kGradients, ShardMode::kFull};
  if (!alone && settings.train.shard != ShardMode::kNone) candidates = {settings.train.shard};
  if (settings.policy.device == PolicyDevice::kCpu) return candidates.front();
  Status status = Status::Ok();
  for (const ShardMode shard : candidates) {
    std::vector<MemoryPart> parts =
        RankMemory(NetworkOf(settings.model), RankMemoryOf(settings, shard));
    parts.push_back(CudaContext());
    status = CheckMemory(alone ? "the trainer"
                               : Concat("each of ", settings.cluster.TrainingGpus(),
                                        " trainer ranks with train.shard = ", ShardModeName(shard)),
                         parts, MemoryBytes(settings.gpu));
    if (status.ok()) return shard;
  }
  return status;
}

std::optional<std::string> ShardingAssignment(const Settings& settings, ShardMode shard) {
  if (settings.cluster.TrainingGpus() == 1) return std::nullopt;
  return Concat("train.shard=", ShardModeName(shard));
}

Status CheckLayoutMemory(const Settings& settings) {
  if (settings.policy.device == PolicyDevice::kCpu) return Status::Ok();
  PACE_RETURN_IF_ERROR(ChooseSharding(settings).status());
  // Room for the longest response, or none would ever end.
  const int64_t tokens = settings.prompt.max_tokens + settings.generation.max_tokens;
  const auto share = static_cast<int64_t>(settings.cluster.memory_share *
                                          static_cast<double>(MemoryBytes(settings.gpu)));
  return CheckMemory(
      Concat("a GPU of an engine (cluster.memory_share = ", settings.cluster.memory_share, ")"),
      EngineMemory(settings, tokens), share);
}

}  // namespace pace
