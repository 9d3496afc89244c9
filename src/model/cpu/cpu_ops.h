// CpuOps: the pieces of network.h on this machine's CPU, for one pass at a time.
//
// Activations lie in workspaces that passes use again. The residual stream and
// all sums are float32; with bf16 weights, what enters a product is rounded to
// bf16. Every row is computed in an order that depends on its context alone.
// Thread-safety: none; the work inside is shared out over the threads.
#ifndef PACE_MODEL_CPU_CPU_OPS_H_
#define PACE_MODEL_CPU_CPU_OPS_H_

#include <cstdint>
#include <vector>

#include "model/cpu/attention.h"
#include "model/cpu/experts.h"
#include "model/cpu/gemm.h"
#include "model/cpu/kv_cache.h"
#include "model/cpu/packed_matrix.h"
#include "model/decoder.h"
#include "model/model_config.h"
#include "model/network.h"

namespace pace {

// Cosines and sines of the rotary embedding, by position. Angles are position * frequency in
// float32, as `transformers` computes them.
class RopeTable {
 public:
  explicit RopeTable(const ModelConfig& config) : frequencies_(RopeFrequencies(config)) {}

  int64_t half() const { return static_cast<int64_t>(frequencies_.size()); }
  // Makes positions [0, num_positions) readable.
  void Reserve(int64_t num_positions);
  // half() values each. REQUIRES: reserved
  const float* cosines(int64_t position) const { return row(position); }
  const float* sines(int64_t position) const { return row(position) + half(); }

 private:
  const float* row(int64_t position) const { return values_.data() + position * 2 * half(); }

  std::vector<float> frequencies_;
  std::vector<float> values_;  // by position: cosines, then sines
};

class CpuOps {
 public:
  // One of the workspaces.
  struct Rows {
    Activations* at = nullptr;
  };
  using Vector = std::vector<float>;
  // Products read the panels; the embedding has rows instead.
  struct Matrix {
    PackedMatrix panels;
    Activations rows;
  };
  using Routing = const RoutingTable*;

  CpuOps(const ModelConfig& config, bool is_bf16, const Kernels& kernels, ThreadPool& threads);

  // Sets the tokens that the following calls are about. `pass` and `cache` must
  // outlive them.
  void Begin(const Pass& pass, KvCache& cache);

  Rows Embed(const Matrix& embedding);
  Rows Norm(const Rows& x, const Vector& weight);
  Rows Linear(const Rows& x, const Matrix& matrix);
  Rows Gated(const Rows& x, const Matrix& gate_up);
  void AddLinear(Rows& x, const Rows& y, const Matrix& matrix);
  void Rotate(Rows& qkv, const Vector* q_norm, const Vector* k_norm);
  Rows Attend(const Rows& qkv, int64_t layer);
  Routing Route(const Rows& x, const Matrix& router);
  void AddExperts(Rows& x, const Rows& h, const Routing& routing,
                  const std::vector<Expert<CpuOps>>& experts);

  Gemm& gemm() { return gemm_; }

 private:
  void Multiply(const Activations& x, const PackedMatrix& matrix, Epilogue epilogue,
                Activations& out);

  const ModelConfig& config_;
  const Kernels& kernels_;
  ThreadPool& threads_;
  Gemm gemm_;
  Attention attention_;
  Experts experts_;
  RopeTable rope_;

  const Pass* pass_ = nullptr;
  KvCache* cache_ = nullptr;
  int64_t num_rows_ = 0;
  std::vector<int64_t> positions_;  // of each row
  Activations residual_;
  Activations normed_;
  Activations qkv_;
  Activations attended_;
  Activations gated_;
  Activations norm_scratch_;  // a row per worker
  std::vector<ExpertMatrices> expert_matrices_;
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_CPU_OPS_H_
