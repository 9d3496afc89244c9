// A task as the settings name it.
//
// Thread-safety: functions of their arguments; what they make is immutable.
#ifndef PACE_TASK_TASK_H_
#define PACE_TASK_TASK_H_

#include <cstdint>
#include <memory>

#include "config/task_options.h"
#include "core/status.h"
#include "task/problem_source.h"
#include "task/prompt_renderer.h"
#include "task/synthetic_source.h"

namespace pace {

struct TrainingProblems {
  std::shared_ptr<const ProblemSource> source = {};
  PromptFit fit = {};  // of a dataset; all zero where problems are generated
};

// The training problems of a run. A dataset is read, checked and held to the
// renderer's length rule; generated problems meet that rule as they come.
// REQUIRES: options.Validate().ok()
Result<TrainingProblems> MakeTrainingProblems(const TaskOptions& options,
                                              const PromptRenderer& renderer, uint64_t seed);

// Supervised examples of a generated task; a dataset has none.
// REQUIRES: options.Validate().ok()
Result<SftSource> MakeSftSource(const TaskOptions& options, uint64_t seed);

}  // namespace pace

#endif  // PACE_TASK_TASK_H_
