// Supervised training: a policy learns to continue prompts as examples do.
//
//   Result<std::unique_ptr<Trainer>> trainer = RunSupervised(settings, policy, examples, progress);
//   Result<WeightSet> weights = (*trainer)->HostSnapshot();
//
// The same trainer as reinforcement learning, with Imitate for Step.
// Thread-safety: none.
#ifndef PACE_EXECUTION_SUPERVISED_H_
#define PACE_EXECUTION_SUPERVISED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "config/settings.h"
#include "core/status.h"
#include "execution/policy.h"
#include "execution/tool_executor.h"
#include "task/prompt_renderer.h"
#include "train/trainer.h"

namespace pace {

// Example number i, endlessly. Safe to call from several threads.
using ExampleSource = std::function<Result<SftTokens>(int64_t index)>;

// The examples of `settings`: those of the generated task, or of the file that
// task.file names (task/sft_line.h), in a shuffled order for every epoch. Replies between the turns
// of an example are the tool's own: `executor` runs its calls (null where tools.use is none).
Result<ExampleSource> SupervisedExamples(const Settings& settings, const Policy& policy,
                                         std::shared_ptr<ToolExecutor> executor);

// One line per update.
struct SupervisedStep {
  int64_t step = 0;
  double loss = 0;  // nats per token
  double grad_norm = 0;
  double learning_rate = 0;
  int64_t num_tokens = 0;
};

// sft.num_steps updates. Stops early, without an error, when `progress` says false.
Result<std::unique_ptr<Trainer>> RunSupervised(
    const Settings& settings, const Policy& policy, const ExampleSource& examples,
    const std::function<bool(const SupervisedStep&)>& progress);

}  // namespace pace

#endif  // PACE_EXECUTION_SUPERVISED_H_
