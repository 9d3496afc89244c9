// Arithmetic: add, subtract or multiply two whole numbers.
//
// Worked solutions go column by column from the right, with the carry as a
// third term or the borrowed ten in front; products go digit by digit of the
// second number, each partial product then added:
//
//   95+8=    5+8=13,9+0+1=10#### 103
//   91-8=    11-8=3,8-0=8#### 83
//   12*34=   12*4=48,12*30=360,48+360=408#### 408
//
// The operation is uniform over those allowed, each operand's number of digits
// over min_digits .. max_digits, the operand over the numbers with that many
// digits. A difference has the larger number first, so answers are never
// negative.
// Thread-safety: immutable.
#ifndef PACE_TASK_ARITHMETIC_H_
#define PACE_TASK_ARITHMETIC_H_

#include "task/synthetic_task.h"

namespace pace {

class Arithmetic final : public SyntheticTask {
 public:
  // REQUIRES: options.Validate().ok()
  explicit Arithmetic(const TaskOptions& options)
      : operations_(options.operations),
        min_digits_(options.min_digits),
        num_digits_(options.max_digits - options.min_digits + 1) {}

  std::string_view name() const override { return "arithmetic"; }

 protected:
  int64_t num_kinds() const override;
  int64_t KindAt(double u) const override;
  Exercise Draw(int64_t kind, const ExerciseDraw& draw) const override;
  std::string Describe(int64_t kind) const override;

 private:
  // A kind is an operation with the digits of both operands.
  struct Kind {
    char operation;
    int64_t left_digits;
    int64_t right_digits;
  };
  Kind Unpack(int64_t kind) const;

  std::string operations_;
  int64_t min_digits_;
  int64_t num_digits_;  // how many numbers of digits there are
};

}  // namespace pace

#endif  // PACE_TASK_ARITHMETIC_H_
