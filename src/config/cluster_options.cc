#include "config/cluster_options.h"

#include <array>

namespace pace {
namespace {

constexpr std::array<std::string_view, 2> kLayoutNames = {"disjoint", "colocated"};
constexpr std::array<std::string_view, 2> kKvNames = {"recompute", "keep"};
constexpr std::array<std::string_view, 3> kCostNames = {"roofline", "table", "constant"};

// Products of shape numbers stay far inside what a double counts exactly.
constexpr double kLargestShape = 1e7;
constexpr double kLargestSeconds = 1e9;

}  // namespace

std::vector<Field> ModelOptions::Fields() {
  return {
      Field::Int("num_layers", num_layers, "Transformer layers.").AtLeast(1).AtMost(10000),
      Field::Int("hidden", hidden, "Width of the residual stream.")
          .AtLeast(1)
          .AtMost(kLargestShape),
      Field::Int("num_heads", num_heads, "Query heads.").AtLeast(1).AtMost(kLargestShape),
      Field::Int("num_kv_heads", num_kv_heads, "Key and value heads.")
          .AtLeast(1)
          .AtMost(kLargestShape),
      Field::Int("head_dim", head_dim, "Width of one head.").AtLeast(1).AtMost(kLargestShape),
      Field::Int("ffn", ffn, "Width of the gated feed-forward part of a dense model.")
          .AtLeast(1)
          .AtMost(kLargestShape),
      Field::Int("vocab", vocab, "Vocabulary.").AtLeast(2).AtMost(kLargestShape),
      Field::Bool("tied_embeddings", tied_embeddings,
                  "Input and output embeddings are one matrix."),
      Field::Int("num_experts", num_experts, "Experts per layer; 0 = dense.")
          .AtLeast(0, "0 means dense")
          .AtMost(100000),
      Field::Int("experts_per_token", experts_per_token, "Experts a token passes through.")
          .AtLeast(0),
      Field::Int("expert_ffn", expert_ffn, "Width of one expert.").AtLeast(0).AtMost(kLargestShape),
      Field::Real("bytes_per_param", bytes_per_param, "Bytes of a weight and of a KV entry.")
          .Above(0)
          .AtMost(16),
  };
}

std::vector<Field> GpuOptions::Fields() {
  return {
      Field::Real("peak_tflops", peak_tflops, "Dense bf16 TFLOP/s.").Above(0),
      Field::Real("memory_tb_per_s", memory_tb_per_s, "Memory bandwidth, TB/s.").Above(0),
      Field::Real("memory_gib", memory_gib, "Memory, GiB.").Above(0),
      Field::Real("node_gb_per_s", node_gb_per_s, "Link to a GPU of the same node, GB/s.").Above(0),
      Field::Real("network_gb_per_s", network_gb_per_s, "Link to another node, GB/s.").Above(0),
      Field::Real(
          "decode_bandwidth_share", decode_bandwidth_share,
          "Share of the memory bandwidth that decoding reaches; well tuned batch-1 decoders: 0.7.")
          .Above(0)
          .AtMost(1),
      Field::Real(
          "prefill_mfu", prefill_mfu,
          "Share of the peak that prefill reaches; large matrix products in a serving engine: 0.5.")
          .Above(0)
          .AtMost(1),
      Field::Real("train_mfu", train_mfu,
                  "Share of the peak that training reaches, recomputation counted as work.")
          .Above(0)
          .AtMost(1),
      Field::Real(
          "launch_us_per_layer", launch_us_per_layer,
          "Host time per layer of one decode iteration, microseconds: about 14 kernels of 5 us.")
          .AtLeast(0),
  };
}

std::vector<Field> ClusterOptions::Fields() {
  return {
      Field::Enum("layout", layout, kLayoutNames,
                  "Own GPUs for generation and training, or all GPUs for each in turn."),
      Field::Int("rollout_gpus", rollout_gpus, "GPUs that generate.").AtLeast(1).AtMost(1e6),
      Field::Int("trainer_gpus", trainer_gpus, "GPUs that train.").AtLeast(1).AtMost(1e6),
      Field::Int("gpus_per_node", gpus_per_node, "GPUs in one machine.").AtLeast(1).AtMost(1e6),
      Field::Int("tensor_parallel", tensor_parallel, "GPUs of one engine.").AtLeast(1).AtMost(1e6),
      Field::Int("slots", slots, "Responses that an engine decodes at once.")
          .AtLeast(1)
          .AtMost(65536),
      Field::Real("memory_share", memory_share,
                  "Share of GPU memory that an engine may use for weights and KV.")
          .Above(0)
          .AtMost(1),
      Field::Enum("kv_at_sync", kv_at_sync, kKvNames,
                  "Whether interrupted responses rebuild their KV under the new weights."),
      Field::Real("sync_gb_per_s", sync_gb_per_s,
                  "Rate at which one GPU takes in new weights, GB/s; its link bounds it. A public "
                  "report of 470 GB in 6.2 s on 8 GPUs is 9.5.")
          .Above(0),
      Field::Real("sync_overhead_s", sync_overhead_s,
                  "Fixed time of a weight sync, seconds: pausing the engine, announcing the "
                  "tensors, resuming.")
          .AtLeast(0)
          .AtMost(kLargestSeconds),
      Field::Bool("rescore_blocks", rescore_blocks,
                  "The trainer waits until every engine has rescored its prefixes."),
      Field::Bool("charge_observers", charge_observers,
                  "Rescoring that only admission.observe reads costs time too."),
      Field::Enum("decode_costs", decode_costs, kCostNames,
                  "Where the time of a decode iteration comes from."),
      Field::Text("decode_table", decode_table,
                  "decode_costs table: file of {\"batch\", \"context\", \"seconds\"} lines, "
                  "context being tokens per response."),
      Field::Real("seconds_per_token", seconds_per_token,
                  "decode_costs constant: time of every iteration; prefill and rescoring are free.")
          .Above(0)
          .AtMost(kLargestSeconds),
      Field::Int("token_scale", token_scale,
                 "Tokens of the modelled network that one token of the run stands for, in costs "
                 "and in memory: a small policy can run at the pace of a large one.")
          .AtLeast(1)
          .AtMost(1 << 20),
      Field::OptionalReal("train_seconds", train_seconds,
                          "Fixed time to train a step; auto = from its tokens.")
          .AtLeast(0)
          .AtMost(kLargestSeconds),
      Field::Int("extra_forwards", extra_forwards,
                 "Forward passes of the trainer besides the one with gradients.")
          .AtLeast(0)
          .AtMost(100),
      Field::Bool("recompute_activations", recompute_activations,
                  "The backward pass runs the forward pass again."),
      Field::Real("train_overhead_s", train_overhead_s,
                  "Fixed time of one update, seconds: batching, packing, logging.")
          .AtLeast(0)
          .AtMost(kLargestSeconds),
      Field::Real("checkpoint_s", checkpoint_s, "Time of one checkpoint, seconds.")
          .AtLeast(0)
          .AtMost(kLargestSeconds),
      Field::Real("failure_every_s", failure_every_s,
                  "Mean time between losses of one engine, seconds; 0 = never.")
          .AtLeast(0, "0 means never")
          .AtMost(kLargestSeconds),
      Field::Real("restart_s", restart_s, "Time until a lost engine is back, seconds.")
          .AtLeast(0)
          .AtMost(kLargestSeconds),
  };
}

Status ClusterOptions::Validate(const GpuOptions&, const ModelOptions& model) const {
  if (model.num_heads % model.num_kv_heads != 0) {
    return InvalidArgument("model.num_kv_heads = ", model.num_kv_heads,
                           ": must divide model.num_heads = ", model.num_heads);
  }
  if (model.num_experts > 0 &&
      (model.experts_per_token < 1 || model.experts_per_token > model.num_experts)) {
    return InvalidArgument("model.experts_per_token = ", model.experts_per_token,
                           ": must be between 1 and model.num_experts = ", model.num_experts);
  }
  if (model.num_experts > 0 && model.expert_ffn < 1) {
    return InvalidArgument("model.expert_ffn = ", model.expert_ffn,
                           ": must be >= 1 where model.num_experts > 0");
  }
  if (GeneratingGpus() % tensor_parallel != 0) {
    return InvalidArgument("cluster.tensor_parallel = ", tensor_parallel, ": must divide the ",
                           GeneratingGpus(), " GPUs that generate");
  }
  if (decode_costs == DecodeCosts::kTable && decode_table.empty()) {
    return InvalidArgument(
        "cluster.decode_table = \"\": must name a file where cluster.decode_costs is table");
  }
  return Status::Ok();
}

int64_t ClusterOptions::GeneratingGpus() const {
  return layout == Layout::kColocated ? AllGpus() : rollout_gpus;
}

int64_t ClusterOptions::TrainingGpus() const {
  return layout == Layout::kColocated ? AllGpus() : trainer_gpus;
}

}  // namespace pace
