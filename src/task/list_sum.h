// ListSum: add a list of numbers modulo a number.
//
// The prompt is the list, every number with as many digits as modulus - 1 has.
// The worked solution writes the sum of the first one, two, ... numbers, so
// that each step needs the step before and one number at a fixed distance:
//
//   prompt  12+07+93=
//   worked  12,19,12#### 12
//   bare    #### 12
//   answer  12
//
// In characters, the marker being one token and the end another, a worked
// solution of n two-digit numbers takes 3 n + 3 tokens and a bare one 4.
// list_lengths.h says how many numbers there are.
//
// Numbers are uniform in 0 .. modulus - 1, and so is the answer: whatever n,
// guessing succeeds once in `modulus` times.
// Thread-safety: immutable.
#ifndef PACE_TASK_LIST_SUM_H_
#define PACE_TASK_LIST_SUM_H_

#include "task/list_lengths.h"
#include "task/synthetic_task.h"

namespace pace {

class ListSum final : public SyntheticTask {
 public:
  // REQUIRES: options.Validate().ok()
  explicit ListSum(const TaskOptions& options);

  std::string_view name() const override { return "list_sum"; }

 protected:
  int64_t num_kinds() const override { return lengths_.num_kinds(); }
  int64_t KindAt(double u) const override { return lengths_.KindAt(u); }
  Exercise Draw(int64_t kind, const ExerciseDraw& draw) const override;
  std::string Describe(int64_t kind) const override { return lengths_.Describe(kind); }

 private:
  std::string Digits(int64_t number) const;

  ListLengths lengths_;
  int64_t modulus_;
  size_t width_;
};

}  // namespace pace

#endif  // PACE_TASK_LIST_SUM_H_
