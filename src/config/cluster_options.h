// Settings of the cost model: network shape, accelerator, machines.
//
// Every default is a public number or an estimate with its reason beside it;
// none is fitted to the run times it is used to predict.
#ifndef PACE_CONFIG_CLUSTER_OPTIONS_H_
#define PACE_CONFIG_CLUSTER_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

// A decoder-only transformer with grouped-query attention and a gated
// feed-forward part, dense or with experts. The default is Qwen3-4B.
struct ModelOptions {
  int64_t num_layers = 36;
  int64_t hidden = 2560;
  int64_t num_heads = 32;
  int64_t num_kv_heads = 8;
  int64_t head_dim = 128;
  int64_t ffn = 9728;  // width of a dense feed-forward part; unused with experts
  int64_t vocab = 151936;
  bool tied_embeddings = true;
  // 0 experts = dense.
  int64_t num_experts = 0;
  int64_t experts_per_token = 0;
  int64_t expert_ffn = 0;
  double bytes_per_param = 2;  // bf16, also of the KV cache

  [[nodiscard]] std::vector<Field> Fields();
};

// The default is an H100 SXM as its datasheet describes it.
struct GpuOptions {
  double peak_tflops = 989;  // dense bf16
  double memory_tb_per_s = 3.35;
  double memory_gib = 80;
  double node_gb_per_s = 450;    // NVLink 4, one direction
  double network_gb_per_s = 50;  // one 400 Gbit/s adapter per GPU

  // Decoding reads weights and KV at this share of the bandwidth; well tuned
  // batch-1 decoders reach about 0.7.
  double decode_bandwidth_share = 0.7;
  // Large matrix products inside a serving engine reach about half the peak.
  double prefill_mfu = 0.5;
  // Sharded data parallelism with recomputation, counting what is recomputed.
  double train_mfu = 0.4;
  // Host work of one decode iteration: about 14 kernels a layer, 5 us each.
  double launch_us_per_layer = 70;

  [[nodiscard]] std::vector<Field> Fields();
};

enum class Layout { kDisjoint, kColocated };
enum class KvAtSync { kRecompute, kKeep };
enum class DecodeCosts { kRoofline, kTable, kConstant };

struct ClusterOptions {
  // disjoint: generation and training run side by side on their own GPUs.
  // colocated: each in turn has all of them, rollout_gpus + trainer_gpus.
  Layout layout = Layout::kDisjoint;
  int64_t rollout_gpus = 4;
  int64_t trainer_gpus = 2;
  int64_t gpus_per_node = 8;
  int64_t tensor_parallel = 1;  // GPUs of one engine
  int64_t slots = 256;          // responses an engine decodes at once
  // Share of GPU memory an engine may use for weights and KV.
  double memory_share = 0.9;

  // At a sync: what becomes of the KV of interrupted responses.
  KvAtSync kv_at_sync = KvAtSync::kRecompute;
  // Rate at which one GPU takes in new weights, never above its link: a public
  // report of 470 GB of weights in 6.2 s on 8 GPUs is 9.5 GB/s each.
  double sync_gb_per_s = 10;
  // Pausing the engine, announcing the tensors, resuming.
  double sync_overhead_s = 0.5;
  // The trainer waits until every engine has rescored its prefixes.
  bool rescore_blocks = false;
  // Rescoring that nothing but `admission.observe` reads costs time too.
  bool charge_observers = false;

  DecodeCosts decode_costs = DecodeCosts::kRoofline;
  std::string decode_table;         // JSON lines {"batch","context","seconds"}
  double seconds_per_token = 0.01;  // decode_costs constant; prefill is then free
  // Tokens of the modelled network that one token of the run stands for. A small
  // policy whose responses take dozens of tokens can so run at the pace of a large
  // one whose responses take thousands.
  int64_t token_scale = 1;

  // Fixed time of a step; auto = from the tokens it trains on.
  std::optional<double> train_seconds;
  // Forward passes of the trainer besides the one with gradients.
  int64_t extra_forwards = 0;
  bool recompute_activations = true;
  // Batching, packing, logging: per update.
  double train_overhead_s = 0.5;
  double checkpoint_s = 0;

  // Mean time between losses of one engine, and its way back; 0 = never lost.
  double failure_every_s = 0;
  double restart_s = 60;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate(const GpuOptions& gpu, const ModelOptions& model) const;

  // GPUs that generate, that train, and that exist.
  int64_t GeneratingGpus() const;
  int64_t TrainingGpus() const;
  int64_t AllGpus() const { return rollout_gpus + trainer_gpus; }
  int64_t NumEngines() const { return GeneratingGpus() / tensor_parallel; }
};

}  // namespace pace

#endif  // PACE_CONFIG_CLUSTER_OPTIONS_H_
