#include "model/cpu/experts.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "model/cpu/thread_pool.h"

namespace pace {

void ChooseExperts(const Kernels& kernels, const MoeConfig& config, std::span<const float> logits,
                   std::span<float> scratch, std::span<int64_t> experts, std::span<float> weights) {
  const auto n = static_cast<int64_t>(logits.size());
  const float largest = kernels.max_of(logits.data(), n);
  const float sum = kernels.exp_sum(logits.data(), n, largest, 1.0F, scratch.data());
  for (float& probability : scratch) probability /= sum;
  float total = 0;
  for (size_t choice = 0; choice < experts.size(); ++choice) {
    // The first of the largest; a NaN never is, so the choice stays in range.
    size_t best = 0;
    for (size_t e = 1; e < scratch.size(); ++e) {
      if (scratch[e] > scratch[best] || scratch[best] < 0) best = e;
    }
    experts[choice] = static_cast<int64_t>(best);
    weights[choice] = scratch[best];
    total += scratch[best];
    scratch[best] = -1;
  }
  if (!config.normalize_weights) return;
  for (float& weight : weights) weight /= total;
}

Experts::Experts(const ModelConfig& config, bool is_bf16, const Kernels& kernels,
                 ThreadPool& threads)
    : config_(config.moe.value_or(MoeConfig{})),
      kernels_(kernels),
      threads_(threads),
      logits_(config_.num_experts, false),
      scratch_(config_.num_experts, false),
      gathered_(config.hidden_size, is_bf16),
      gated_(config_.intermediate_size, is_bf16),
      outputs_(config.hidden_size, false) {
  routing_.num_chosen = config_.num_experts_per_token;
  scratch_.Reserve(threads.num_threads());
}

const RoutingTable& Experts::Route(const Activations& x, int64_t num_rows,
                                   const PackedMatrix& router, Gemm& gemm) {
  logits_.Reserve(num_rows);
  const GemmProduct product = {.matrix = &router,
                               .x = x.data(),
                               .x_stride = x.stride(),
                               .num_rows = num_rows,
                               .out = logits_.data(),
                               .out_stride = logits_.stride()};
  gemm.Run({&product, 1});
  const int64_t num_chosen = routing_.num_chosen;
  routing_.num_rows = num_rows;
  routing_.experts.resize(static_cast<size_t>(num_rows * num_chosen));
  routing_.weights.resize(static_cast<size_t>(num_rows * num_chosen));
  const auto choose = [&](int64_t row, int64_t worker) {
    const auto num_experts = static_cast<size_t>(config_.num_experts);
    const auto at = static_cast<size_t>(row * num_chosen);
    const auto count = static_cast<size_t>(num_chosen);
    ChooseExperts(kernels_, config_, {logits_.floats(row), num_experts},
                  {scratch_.floats(worker), num_experts},
                  std::span(routing_.experts).subspan(at, count),
                  std::span(routing_.weights).subspan(at, count));
  };
  ForRows(threads_, num_rows, config_.num_experts * (num_chosen + 4), choose);
  return routing_;
}

void Experts::Gather(const Activations& h, const RoutingTable& routing, size_t num_experts) {
  const auto num_slots = static_cast<int64_t>(routing.experts.size());
  gathered_.Reserve(num_slots);
  gated_.Reserve(num_slots);
  outputs_.Reserve(num_slots);
  first_slots_.assign(num_experts + 1, 0);
  for (const int64_t expert : routing.experts) ++first_slots_[static_cast<size_t>(expert) + 1];
  for (size_t e = 0; e < num_experts; ++e) first_slots_[e + 1] += first_slots_[e];
  next_slots_ = first_slots_;
  slots_.resize(routing.experts.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i] = next_slots_[static_cast<size_t>(routing.experts[i])]++;
  }
  PACE_CHECK(h.stride() == gathered_.stride() && h.is_bf16() == gathered_.is_bf16());
  ForRows(threads_, num_slots, h.width(), [&](int64_t i, int64_t) {
    std::memcpy(gathered_.bytes(slots_[static_cast<size_t>(i)]), h.bytes(i / routing.num_chosen),
                static_cast<size_t>(h.row_bytes()));
  });
}

void Experts::Add(Activations& x, const Activations& h, const RoutingTable& routing,
                  std::span<const ExpertMatrices> experts, Gemm& gemm) {
  Gather(h, routing, experts.size());
  const auto run = [&](const PackedMatrix* ExpertMatrices::* matrix, const Activations& from,
                       Epilogue epilogue, Activations& to) {
    products_.clear();
    for (size_t e = 0; e < experts.size(); ++e) {
      const int64_t first = first_slots_[e];
      if (first_slots_[e + 1] == first) continue;
      products_.push_back({.matrix = experts[e].*matrix,
                           .x = from.bytes(first),
                           .x_stride = from.stride(),
                           .num_rows = first_slots_[e + 1] - first,
                           .epilogue = epilogue,
                           .out_is_bf16 = to.is_bf16(),
                           .out = to.bytes(first),
                           .out_stride = to.stride()});
    }
    gemm.Run(products_);
  };
  run(&ExpertMatrices::gate_up, gathered_, Epilogue::kGated, gated_);
  run(&ExpertMatrices::down, gated_, Epilogue::kStore, outputs_);
  Combine(x, routing);
}

void Experts::Combine(Activations& x, const RoutingTable& routing) {
  ForRows(threads_, routing.num_rows, x.width() * (routing.num_chosen + 1),
          [&](int64_t row, int64_t) {
            // The sum gathers in the slot of the first choice, which no other task reads.
            const auto first = static_cast<size_t>(row * routing.num_chosen);
            float* const sum = outputs_.floats(slots_[first]);
            const float weight = routing.weights[first];
            for (int64_t i = 0; i < x.width(); ++i) sum[i] *= weight;
            for (int64_t choice = 1; choice < routing.num_chosen; ++choice) {
              const size_t at = first + static_cast<size_t>(choice);
              kernels_.add_scaled(routing.weights[at], outputs_.floats(slots_[at]), x.width(), sum);
            }
            kernels_.add_scaled(1.0F, sum, x.width(), x.floats(row));
          });
}

}  // namespace pace
