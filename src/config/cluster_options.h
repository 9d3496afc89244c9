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
  int64_t ffn = 9728;
  int64_t vocab = 151936;
  bool tied_embeddings = true;
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

  double decode_bandwidth_share = 0.7;
  double prefill_mfu = 0.5;
  double train_mfu = 0.4;
  double launch_us_per_layer = 70;

  [[nodiscard]] std::vector<Field> Fields();
};

enum class Layout { kDisjoint, kColocated };
enum class KvAtSync { kRecompute, kKeep };
enum class DecodeCosts { kRoofline, kTable, kConstant };

struct ClusterOptions {
  Layout layout = Layout::kDisjoint;
  int64_t rollout_gpus = 4;
  int64_t trainer_gpus = 2;
  int64_t gpus_per_node = 8;
  int64_t tensor_parallel = 1;
  int64_t slots = 256;
  double memory_share = 0.9;

  KvAtSync kv_at_sync = KvAtSync::kRecompute;
  double sync_gb_per_s = 10;
  double sync_overhead_s = 0.5;
  bool rescore_blocks = false;
  bool charge_observers = false;

  DecodeCosts decode_costs = DecodeCosts::kRoofline;
  std::string decode_table;
  double seconds_per_token = 0.01;
  int64_t token_scale = 1;

  std::optional<double> train_seconds;
  int64_t extra_forwards = 0;
  bool recompute_activations = true;
  double train_overhead_s = 0.5;
  double checkpoint_s = 0;

  double failure_every_s = 0;
  double restart_s = 60;

  [[nodiscard]] std::vector<Field> Fields();
  [[nodiscard]] Status Validate(const GpuOptions& gpu, const ModelOptions& model) const;

  // GPUs that generate, that train, and that exist.
  int64_t GeneratingGpus() const;
  int64_t TrainingGpus() const;
  int64_t AllGpus() const { return rollout_gpus + trainer_gpus; }
  bool FitsOneNode() const { return AllGpus() <= gpus_per_node; }
  int64_t NumEngines() const { return GeneratingGpus() / tensor_parallel; }
};

}  // namespace pace

#endif  // PACE_CONFIG_CLUSTER_OPTIONS_H_
