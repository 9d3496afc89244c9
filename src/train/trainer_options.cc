#include "train/trainer_options.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "train/adamw_reference.h"

namespace pace {

Status TrainerOptions::Validate() const {
  TrainerOptions copy = *this;
  PACE_RETURN_IF_ERROR(CheckFields(copy.Fields(), "train"));
  PACE_RETURN_IF_ERROR(LearningOptions::Validate());
  PACE_RETURN_IF_ERROR(kl.loss_estimator.Validate());
  PACE_RETURN_IF_ERROR(kl.reward_estimator.Validate());
  if (ess.has_value()) PACE_RETURN_IF_ERROR(ess->Validate());
  if (opob.has_value()) PACE_RETURN_IF_ERROR(opob->Validate());
  if (!(adamw.epsilon > 0)) {
    return InvalidArgument("epsilon = ", adamw.epsilon, ": must be > 0");
  }
  if (!(temperature > 0)) return InvalidArgument("temperature = ", temperature, ": must be > 0");
  if (num_minibatches < 1) {
    return InvalidArgument("num_minibatches = ", num_minibatches, ": must be at least 1");
  }
  if (decay_updates >= 0) return Status::Ok();
  return InvalidArgument("decay_updates = ", decay_updates, ": must be >= 0");
}

double TrainerOptions::LearningRate(int64_t update) const {
  const double rate = WarmupLearningRate(learning_rate, update, warmup_updates);
  if (decay_updates == 0) return rate;
  const double done =
      std::min(1.0, static_cast<double>(update) / static_cast<double>(decay_updates));
  return rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace pace
