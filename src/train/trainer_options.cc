#include "train/trainer_options.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "train/adamw_reference.h"

namespace pace {

Status ValueHeadOptions::Validate() const {
  if (!(learning_rate >= 0)) {
    return InvalidArgument("value.learning_rate = ", learning_rate, ": must be >= 0");
  }
  if (!(coefficient >= 0)) {
    return InvalidArgument("value.coefficient = ", coefficient, ": must be >= 0");
  }
  if (clip >= 0) return Status::Ok();
  return InvalidArgument("value.clip = ", clip, ": must be >= 0 (0 = no clipping)");
}

Status InitialKlOptions::Validate() const {
  if (!(loss_coefficient >= 0)) {
    return InvalidArgument("kl.loss_coefficient = ", loss_coefficient, ": must be >= 0");
  }
  if (!(reward_coefficient >= 0)) {
    return InvalidArgument("kl.reward_coefficient = ", reward_coefficient, ": must be >= 0");
  }
  if (!(controller.target >= 0)) {
    return InvalidArgument("kl.target = ", controller.target, ": must be >= 0 (0 = fixed)");
  }
  if (!(controller.horizon > 0)) {
    return InvalidArgument("kl.horizon = ", controller.horizon, ": must be > 0");
  }
  PACE_RETURN_IF_ERROR(loss_estimator.Validate());
  return reward_estimator.Validate();
}

Status TrainerOptions::Validate() const {
  if (!(learning_rate >= 0)) {
    return InvalidArgument("learning_rate = ", learning_rate, ": must be >= 0");
  }
  if (warmup_updates < 0) {
    return InvalidArgument("warmup_updates = ", warmup_updates, ": must be >= 0");
  }
  if (decay_updates < 0) {
    return InvalidArgument("decay_updates = ", decay_updates, ": must be >= 0");
  }
  if (!(max_grad_norm >= 0)) {
    return InvalidArgument("max_grad_norm = ", max_grad_norm, ": must be >= 0 (0 = no clipping)");
  }
  if (!(temperature > 0)) return InvalidArgument("temperature = ", temperature, ": must be > 0");
  if (num_minibatches < 1) {
    return InvalidArgument("num_minibatches = ", num_minibatches, ": must be at least 1");
  }
  if (token_budget < 1) {
    return InvalidArgument("token_budget = ", token_budget, ": must be at least 1");
  }
  if (num_threads < 1) {
    return InvalidArgument("num_threads = ", num_threads, ": must be at least 1");
  }
  PACE_RETURN_IF_ERROR(value.Validate());
  PACE_RETURN_IF_ERROR(kl.Validate());
  if (ess.has_value()) PACE_RETURN_IF_ERROR(ess->Validate());
  if (opob.has_value()) PACE_RETURN_IF_ERROR(opob->Validate());
  PACE_RETURN_IF_ERROR(correction.Validate());
  return adamw.Validate();
}

double TrainerOptions::LearningRate(int64_t update) const {
  const double rate = WarmupLearningRate(learning_rate, update, warmup_updates);
  if (decay_updates == 0) return rate;
  const double done =
      std::min(1.0, static_cast<double>(update) / static_cast<double>(decay_updates));
  return rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace pace
