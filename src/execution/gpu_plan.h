// GpuPlan: what a run needs of one GPU that rollouts and training share, from its
// settings alone.
//
//   const GpuPlan plan = PlanGpu(settings, policy.config, 1);
//   PACE_RETURN_IF_ERROR(plan.Check(device.memory_bytes));
//   PACE_RETURN_IF_ERROR(LimitTrainingMemory(plan.TrainingLimit(device.memory_bytes)));
//
// Engines allocate weights and caches once, when they are created. Training memory grows
// with the batch; its limit is what the engines leave, or train.memory_gib. Trainer ranks that
// share the GPU divide it equally.
// Thread-safety: plain data.
#ifndef PACE_EXECUTION_GPU_PLAN_H_
#define PACE_EXECUTION_GPU_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/memory_plan.h"
#include "config/settings.h"
#include "core/status.h"
#include "model/model_config.h"

namespace pace {

// Who uses the GPU of a trainer rank besides it.
struct GpuShare {
  int64_t num_ranks = 1;     // of the run
  int64_t ranks_on_gpu = 1;  // this one included
  bool has_rank_0 = true;    // which has the engines
};

struct GpuPlan {
  struct Part {
    std::string name;
    int64_t num_bytes = 0;
    std::string hint = {};  // the key that makes it smaller, if one does
  };
  std::vector<Part> training;
  std::vector<Part> rollouts;
  std::vector<Part> others;
  int64_t training_bound = 0;  // train.memory_gib; 0 = what is left
  int64_t num_ranks = 1;       // on this GPU; `training` is what each needs

  int64_t TrainingBytes() const;
  int64_t OtherBytes() const;  // of rollouts and the rest
  int64_t TotalBytes() const { return num_ranks * TrainingBytes() + OtherBytes(); }

  // An error with the numbers where it does not fit.
  [[nodiscard]] Status Check(int64_t memory_bytes) const;
  // What LibTorch may hold in one process. REQUIRES: Check is Ok
  int64_t TrainingLimit(int64_t memory_bytes) const;
};

NetworkSize NetworkSizeOf(const ModelConfig& config);

// With `num_engines` engines in this process and one more that evaluates, where there are
// benchmarks; 0: servers generate and evaluate.
GpuPlan PlanGpu(const Settings& settings, const ModelConfig& config, int64_t num_engines,
                const GpuShare& share = {});

// For a run with policy.device = cuda: finds the GPU, checks the plan and sets the
// limit. Does nothing for the CPU.
Status PrepareGpu(const Settings& settings, const ModelConfig& config, const GpuShare& share = {});

}  // namespace pace

#endif  // PACE_EXECUTION_GPU_PLAN_H_
