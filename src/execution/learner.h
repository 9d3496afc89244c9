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

#include <memory>
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
  NamedTensors moments = {};  // of the optimizer
  int64_t num_updates = 0;
};

// Weights (Hugging Face layout) and optimizer.safetensors, into a folder that is
// there and empty.
Status SaveLearnerState(const std::string& folder, const Policy& policy, const LearnerState& state);

class Learner {
 public:
  static Result<std::unique_ptr<Learner>> Create(const Settings& settings, const Policy& policy);

  Result<MetricList> Train(PolicyVersion step, const std::vector<TrainSequence>& sequences);

  // A copy of the present weights, for engines and evaluation.
  WeightSet Snapshot() const;

  LearnerState Copy() const;
  // From a folder that SaveLearnerState wrote.
  Status Restore(const std::string& folder);

 private:
  Learner(const Settings& settings, const Policy& policy, std::unique_ptr<Trainer> trainer);

  const Settings& settings_;
  const Policy& policy_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace pace

#endif  // PACE_EXECUTION_LEARNER_H_
