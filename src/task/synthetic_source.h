// Generated problems as a stream for training, and as examples for supervised
// training.
//
// Thread-safety: immutable.
#ifndef PACE_TASK_SYNTHETIC_SOURCE_H_
#define PACE_TASK_SYNTHETIC_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "task/problem.h"
#include "task/problem_source.h"
#include "task/synthetic_task.h"

namespace pace {

// The exercise in a prompt of this form (problem.h).
Problem ToProblem(const SyntheticTask& task, const Exercise& exercise, std::string id,
                  std::string_view prompt_template = kProblemField);

class SyntheticSource final : public ProblemSource {
 public:
  SyntheticSource(std::shared_ptr<const SyntheticTask> task, uint64_t seed,
                  std::string prompt_template = std::string(kProblemField))
      : task_(std::move(task)), seed_(seed), prompt_template_(std::move(prompt_template)) {}

  Problem At(PromptIndex index) const override;
  std::optional<int64_t> epoch_size() const override { return std::nullopt; }

 private:
  std::shared_ptr<const SyntheticTask> task_;
  uint64_t seed_;
  std::string prompt_template_;
};

// What a model is shown: it learns to continue the prompt by what it says and the end
// token, which is the tokenizer's to name. Between two turns it reads a tool's reply.
struct SftExample {
  Prompt prompt;
  std::vector<std::string> turns;  // at least one

  friend bool operator==(const SftExample&, const SftExample&) = default;
};

// The endless stream of supervised examples: a share of worked solutions, the
// rest as the task has them. A pure function of (seed, index), and apart from the
// problems that SyntheticSource draws under the same seed.
class SftSource {
 public:
  // REQUIRES: 0 <= worked_share <= 1
  SftSource(std::shared_ptr<const SyntheticTask> task, uint64_t seed, double worked_share,
            std::string prompt_template = std::string(kProblemField))
      : task_(std::move(task)),
        seed_(seed),
        worked_share_(worked_share),
        prompt_template_(std::move(prompt_template)) {}

  // REQUIRES: index >= 0
  SftExample At(int64_t index) const;

 private:
  std::shared_ptr<const SyntheticTask> task_;
  uint64_t seed_;
  double worked_share_;
  std::string prompt_template_;
};

}  // namespace pace

#endif  // PACE_TASK_SYNTHETIC_SOURCE_H_
