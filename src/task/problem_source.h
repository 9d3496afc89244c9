// ProblemSource: the endless stream of training problems.
//
// At is a pure function of the source and the index: the index is the whole
// data cursor, so nothing needs saving, and problems may be asked for in any
// order, again, and by any thread.
//
//   Result<TrainingProblems> problems = MakeTrainingProblems(task, renderer, seed);
//   Problem first = problems->source->At(PromptIndex(0));
//
// Thread-safety: immutable.
#ifndef PACE_TASK_PROBLEM_SOURCE_H_
#define PACE_TASK_PROBLEM_SOURCE_H_

#include <cstdint>
#include <optional>

#include "core/ids.h"
#include "task/problem.h"

namespace pace {

class ProblemSource {
 public:
  virtual ~ProblemSource() = default;

  // REQUIRES: index >= 0
  virtual Problem At(PromptIndex index) const = 0;

  // After this many problems each has come once; none where they are generated.
  virtual std::optional<int64_t> epoch_size() const = 0;
};

}  // namespace pace

#endif  // PACE_TASK_PROBLEM_SOURCE_H_
