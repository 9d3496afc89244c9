#include "cluster/cost_model.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "cluster/decode_table.h"
#include "cluster/model_shape.h"

namespace pace {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr double kGib = 1073741824.0;
// One small all-reduce between GPUs of a node.
constexpr double kAllReduceSeconds = 10e-6;
// Bytes an update moves per parameter: fp32 master weight and two moments read
// and written, fp32 gradient read, bf16 weight written.
constexpr double kOptimizerBytesPerParam = 3 * 8 + 4 + 2;
// No bound: more context than any run holds.
constexpr int64_t kUnboundedContext = int64_t{1} << 50;

double AllReducesPerIteration(const ModelOptions& model, const GpuOptions& gpu,
                              const ClusterOptions& cluster, double tokens) {
  const double ways = static_cast<double>(cluster.tensor_parallel);
  if (ways <= 1) return 0;
  const double bytes = tokens * static_cast<double>(model.hidden) * model.bytes_per_param;
  const double link = gpu.node_gb_per_s * kGiga;
  return 2 * static_cast<double>(model.num_layers) *
         (kAllReduceSeconds + 2 * (ways - 1) / ways * bytes / link);
}

double SyncTransferSeconds(const ModelOptions& model, const GpuOptions& gpu,
                           const ClusterOptions& cluster) {
  const double link = cluster.FitsOneNode() ? gpu.node_gb_per_s : gpu.network_gb_per_s;
  const double rate = std::min(cluster.sync_gb_per_s, link) * kGiga;
  return WeightBytes(model) / static_cast<double>(cluster.tensor_parallel) / rate;
}

// `curve` over tokens that each stand for `scale` of the network's: one iteration of the run
// is `scale` iterations of the network, over `scale` times the context.
DecodeCurve Scaled(const DecodeCurve& curve, int64_t scale) {
  if (scale == 1) return curve;
  const auto factor = static_cast<double>(scale);
  std::vector<DecodePiece> pieces = curve.pieces();
  for (DecodePiece& piece : pieces) {
    piece.begin = (piece.begin + scale - 1) / scale;
    piece.base *= factor;
    piece.slope *= factor * factor;
  }
  return {curve.batch(), std::move(pieces)};
}

double Flops(const ModelOptions& model, const PassSize& pass) {
  return 2 * NumActiveParameters(model) * pass.tokens + AttentionFlopsPerPair(model) * pass.pairs;
}

}  // namespace

DecodeCurve RooflineCurve(const ModelOptions& model, const GpuOptions& gpu,
                          const ClusterOptions& cluster, int64_t batch) {
  const double n = static_cast<double>(batch);
  const double ways = static_cast<double>(cluster.tensor_parallel);
  const double bandwidth = gpu.memory_tb_per_s * kTera * gpu.decode_bandwidth_share * ways;
  const double peak = gpu.peak_tflops * kTera * gpu.prefill_mfu * ways;
  const double overhead = gpu.launch_us_per_layer * 1e-6 * static_cast<double>(model.num_layers) +
                          AllReducesPerIteration(model, gpu, cluster, n);
  const DecodePiece memory = {
      0, NumParametersRead(model, n) * model.bytes_per_param / bandwidth + overhead,
      KvBytesPerToken(model) / bandwidth};
  const DecodePiece compute = {0, 2 * NumActiveParameters(model) * n / peak + overhead,
                               AttentionFlopsPerPair(model) / peak};
  return {batch, UpperEnvelope(memory, compute)};
}

Result<CostModel> CostModel::Create(const ModelOptions& model, const GpuOptions& gpu,
                                    const ClusterOptions& cluster) {
  CostModel costs;
  costs.model_ = model;
  costs.gpu_ = gpu;
  costs.cluster_ = cluster;
  costs.sync_seconds_ = cluster.sync_overhead_s;
  costs.kv_capacity_ = kUnboundedContext;
  if (cluster.decode_costs != DecodeCosts::kConstant) {
    costs.sync_seconds_ += SyncTransferSeconds(model, gpu, cluster);
    const double memory =
        gpu.memory_gib * kGib * cluster.memory_share * static_cast<double>(cluster.tensor_parallel);
    const double tokens = (memory - WeightBytes(model)) / KvBytesPerToken(model);
    if (!(tokens >= static_cast<double>(cluster.token_scale))) {
      return InvalidArgument("gpu.memory_gib = ", gpu.memory_gib, ": ", WeightBytes(model) / kGib,
                             " GiB of weights do not fit into ", memory / kGib,
                             " GiB (raise tensor_parallel or memory_share)");
    }
    costs.kv_capacity_ = static_cast<int64_t>(std::min(tokens, 1e15)) / cluster.token_scale;
  }
  std::optional<DecodeTable> table;
  if (cluster.decode_costs == DecodeCosts::kTable) {
    PACE_ASSIGN_OR_RETURN(table, DecodeTable::Load(cluster.decode_table));
  }
  costs.decode_.reserve(static_cast<size_t>(cluster.slots));
  for (int64_t batch = 1; batch <= cluster.slots; ++batch) {
    switch (cluster.decode_costs) {
      case DecodeCosts::kRoofline:
        costs.decode_.push_back(
            Scaled(RooflineCurve(model, gpu, cluster, batch), cluster.token_scale));
        break;
      case DecodeCosts::kTable:
        costs.decode_.push_back(Scaled(table->Curve(batch), cluster.token_scale));
        break;
      case DecodeCosts::kConstant:
        costs.decode_.emplace_back(batch,
                                   std::vector<DecodePiece>{{0, cluster.seconds_per_token, 0}});
        break;
    }
  }
  return costs;
}

double CostModel::PrefillSeconds(const PassSize& run_pass) const {
  if (cluster_.decode_costs == DecodeCosts::kConstant) return 0;
  const PassSize pass = run_pass.Scaled(scale());
  const double peak =
      gpu_.peak_tflops * kTera * gpu_.prefill_mfu * static_cast<double>(cluster_.tensor_parallel);
  // Only the last token of a prompt passes the output projection.
  const double flops =
      Flops(model_, pass) - VocabularyFlopsPerToken(model_) * std::max(0.0, pass.tokens - 1);
  return flops / peak;
}

double CostModel::TrainSeconds(const PassSize& run_pass, int64_t num_updates) const {
  if (cluster_.train_seconds.has_value()) return *cluster_.train_seconds;
  const PassSize pass = run_pass.Scaled(scale());
  const double gpus = static_cast<double>(cluster_.TrainingGpus());
  // The backward pass costs two forwards.
  const double forwards =
      3 + (cluster_.recompute_activations ? 1 : 0) + static_cast<double>(cluster_.extra_forwards);
  const double work =
      forwards * Flops(model_, pass) / (gpu_.peak_tflops * kTera * gpu_.train_mfu * gpus);
  const double optimizer = kOptimizerBytesPerParam * NumParameters(model_) /
                           (gpu_.memory_tb_per_s * kTera * gpu_.decode_bandwidth_share * gpus);
  return work + static_cast<double>(num_updates) * (optimizer + cluster_.train_overhead_s);
}

double CostModel::RescoreSeconds(double scored, const PassSize& pass) const {
  if (cluster_.decode_costs == DecodeCosts::kConstant) return 0;
  const double peak =
      gpu_.peak_tflops * kTera * gpu_.prefill_mfu * static_cast<double>(cluster_.tensor_parallel);
  const double projection = VocabularyFlopsPerToken(model_) * scored * scale() / peak;
  return cluster_.kv_at_sync == KvAtSync::kRecompute ? projection
                                                     : projection + PrefillSeconds(pass);
}

}  // namespace pace
