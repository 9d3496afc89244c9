// Learner: the trainer of a run, with what a run needs of it.
//
//   Result<std::unique_ptr<Learner>> learner = Learner::Create(settings, policy);
//   Result<MetricList> metrics = (*learner)->Train(step, sequences);
//   WeightSet weights = (*learner)->Snapshot();      // stays as it is
//   Status saved = SaveLearnerState(folder, policy, (*learner)->Copy());
//
// Thread-safety: none; one thread at a time, and that thread may change.
#ifndef PACE_EXECUTION_LEARNER_H_
#define PACE_EXECUTION_LEARNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/status.h"
#include "core/version.h"
#include "execution/policy.h"
#include "train/minibatch.h"
#include "train/trainer.h"

namespace pace {

// A copy of what a learner knows, to be written while it goes on.
struct LearnerState {
  WeightSet weights = {};
  TrainerState trainer = {};
  // Of the initial policy's weights, where penalties measure the distance from it.
  std::optional<uint32_t> initial_checksum = {};
};

// Weights (Hugging Face layout) and optimizer.safetensors, into a folder that is
// there and empty. The latter also holds a value head; not the initial policy.
Status SaveLearnerState(const std::string& folder, const Policy& policy, const LearnerState& state);

class Learner {
 public:
  // Begins at `policy`, which KL penalties measure the distance from ever after.
  static Result<std::unique_ptr<Learner>> Create(const Settings& settings, const Policy& policy);

  Result<MetricList> Train(PolicyVersion step, const std::vector<TrainSequence>& sequences);

  // A copy of the present weights, for engines and evaluation: on a GPU it stays
  // there, in the engines' dtype.
  WeightSet Snapshot() const;
  // A copy on the host, in float32.
  WeightSet HostSnapshot() const;

  LearnerState Copy() const;
  // From a folder that SaveLearnerState wrote. An error where this learner began at
  // another policy than that one and the difference matters.
  Status Restore(const std::string& folder);

 private:
  Learner(const Settings& settings, const Policy& policy, std::unique_ptr<Trainer> trainer,
          std::optional<uint32_t> initial_checksum);

  const Settings& settings_;
  const Policy& policy_;
  std::unique_ptr<Trainer> trainer_;
  const std::optional<uint32_t> initial_checksum_;
  int64_t num_steps_ = 0;  // of this process
};

}  // namespace pace

#endif  // PACE_EXECUTION_LEARNER_H_
