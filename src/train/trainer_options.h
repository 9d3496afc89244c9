// TrainerOptions: the settings of `train`, and what a trainer must know of the others.
// Thread-safety: plain data.
#ifndef PACE_TRAIN_TRAINER_OPTIONS_H_
#define PACE_TRAIN_TRAINER_OPTIONS_H_

#include <cstdint>
#include <optional>

#include "config/train_options.h"
#include "core/status.h"
#include "model/devices.h"

namespace pace {

struct TrainerOptions : LearningOptions {
  // Where the network computes, and in what: float32, or bfloat16, in which norms,
  // rotation and softmax stay float32. Master weights are float32 in both.
  DeviceKind device = DeviceKind::kCpu;
  bool compute_in_bf16 = false;
  double horizon = 0;           // of seq-mean-token-sum-norm
  double temperature = 1;       // that the rollouts were sampled at
  int64_t num_minibatches = 1;  // updates per step
  // Minibatches are cut from the groups in random order; none: in order of dispatch.
  std::optional<uint64_t> shuffle_seed = {};
  int64_t decay_updates = 0;  // the rate falls to 0 along a cosine until then; 0 = never

  [[nodiscard]] Status Validate() const;
  // The learning rate of update `update` = 0, 1, ...
  double LearningRate(int64_t update) const;
};

}  // namespace pace

#endif  // PACE_TRAIN_TRAINER_OPTIONS_H_
