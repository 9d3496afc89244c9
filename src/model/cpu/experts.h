// The mixture of experts: routing, and the products of the chosen experts.
//
// Rows are gathered by expert, so that every expert is one product; all experts
// of a layer form one loop over the threads. A row's outputs are added in the
// order of its choice, by falling weight, whatever else is in the pass.
#ifndef PACE_MODEL_CPU_EXPERTS_H_
#define PACE_MODEL_CPU_EXPERTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model/cpu/gemm.h"
#include "model/cpu/kernels/kernels.h"
#include "model/cpu/packed_matrix.h"
#include "model/cpu/thread_pool.h"
#include "model/model_config.h"

namespace pace {

// The experts of each row, by falling probability (the lowest index among
// equals), and their weights.
struct RoutingTable {
  int64_t num_rows = 0;
  int64_t num_chosen = 0;        // per row
  std::vector<int64_t> experts;  // [rows][chosen]
  std::vector<float> weights;
};

// From one row of router logits; softmax over all experts in float32. `scratch`
// is as long as the logits.
void ChooseExperts(const Kernels& kernels, const MoeConfig& config, std::span<const float> logits,
                   std::span<float> scratch, std::span<int64_t> experts, std::span<float> weights);

// The matrices of one expert.
struct ExpertMatrices {
  const PackedMatrix* gate_up = nullptr;
  const PackedMatrix* down = nullptr;
};

class Experts {
 public:
  Experts(const ModelConfig& config, bool is_bf16, const Kernels& kernels, ThreadPool& threads);

  const RoutingTable& Route(const Activations& x, int64_t num_rows, const PackedMatrix& router,
                            Gemm& gemm);
  // x += the weighted outputs of the experts for the rows of h.
  void Add(Activations& x, const Activations& h, const RoutingTable& routing,
           std::span<const ExpertMatrices> experts, Gemm& gemm);

 private:
  // Sorts (row, choice) by expert and copies the rows there.
  void Gather(const Activations& h, const RoutingTable& routing, size_t num_experts);
  void Combine(Activations& x, const RoutingTable& routing);

  const MoeConfig config_;
  const Kernels& kernels_;
  ThreadPool& threads_;
  RoutingTable routing_;
  Activations logits_;
  Activations scratch_;  // a row per worker
  Activations gathered_;
  Activations gated_;
  Activations outputs_;
  std::vector<int64_t> first_slots_;  // of each expert, and the end
  std::vector<int64_t> slots_;        // of each (row, choice)
  std::vector<int64_t> next_slots_;
  std::vector<GemmProduct> products_;
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_EXPERTS_H_
