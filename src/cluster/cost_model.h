// CostModel: how long the parts of a run take, from network shape and GPU
// numbers.
//
//   decode iteration   max(bytes read / bandwidth, operations / peak) + launches
//   prefill            operations / peak
//   training a step    operations (forward, backward, recomputation) / peak,
//                      plus the optimizer's memory traffic per update
//   rescoring          the output projection of the scored tokens where the sync
//                      re-prefills anyway; a whole forward pass where the old KV
//                      is kept
//   weight sync        a fixed part plus bytes / rate
//
// A tensor-parallel engine divides bytes and operations by its GPUs and pays
// two all-reduces a layer. With decode_costs constant, prefill, rescoring and
// the transfer are free, so that a run can be compared with theory.
//
// Sizes are in tokens of the run; with cluster.token_scale each stands for several tokens of
// the network.
//
// Thread-safety: immutable after Create.
#ifndef PACE_CLUSTER_COST_MODEL_H_
#define PACE_CLUSTER_COST_MODEL_H_

#include <cstdint>
#include <vector>

#include "cluster/decode_curve.h"
#include "config/cluster_options.h"
#include "core/status.h"

namespace pace {

// An amount of attention work: tokens computed, and (token, context) pairs.
struct PassSize {
  double tokens = 0;
  double pairs = 0;

  // `added` tokens computed after `context` cached ones.
  static PassSize Extending(double context, double added) {
    return {added, added * context + 0.5 * added * added};
  }
  // Every token standing for `scale` of them.
  PassSize Scaled(double scale) const { return {tokens * scale, pairs * scale * scale}; }
  PassSize& operator+=(const PassSize& other) {
    tokens += other.tokens;
    pairs += other.pairs;
    return *this;
  }
};

class CostModel {
 public:
  // Reads the decode table if the options name one. Weights that do not fit an engine's memory
  // are an error.
  static Result<CostModel> Create(const ModelOptions& model, const GpuOptions& gpu,
                                  const ClusterOptions& cluster);

  // REQUIRES: 1 <= batch <= cluster.slots.
  const DecodeCurve& Decode(int64_t batch) const { return decode_[static_cast<size_t>(batch) - 1]; }
  double PrefillSeconds(const PassSize& pass) const;
  // `pass` covers every trained sequence from its first token.
  double TrainSeconds(const PassSize& pass, int64_t num_updates) const;
  // `scored` policy tokens; `pass` the prefixes they end, from the first token.
  double RescoreSeconds(double scored, const PassSize& pass) const;
  double SyncSeconds() const { return sync_seconds_; }
  // Context tokens that fit beside the weights of one engine.
  int64_t KvCapacity() const { return kv_capacity_; }

 private:
  CostModel() = default;
  double scale() const { return static_cast<double>(cluster_.token_scale); }

  ModelOptions model_;
  GpuOptions gpu_;
  ClusterOptions cluster_;
  std::vector<DecodeCurve> decode_;
  double sync_seconds_ = 0;
  int64_t kv_capacity_ = 0;
};

// The roofline of one decode iteration over `batch` responses.
DecodeCurve RooflineCurve(const ModelOptions& model, const GpuOptions& gpu,
                          const ClusterOptions& cluster, int64_t batch);

}  // namespace pace

#endif  // PACE_CLUSTER_COST_MODEL_H_
