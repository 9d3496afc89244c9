// Product: multiply a list of three-digit numbers, modulo a number.
//
// More than a small model can do in its head, and one line of Python:
//
//   prompt    417x883x291 mod 9973
//   call      print(417*883*291%9973)       the tool replies 9462
//   answer    \boxed{9462}
//
// Supervised examples are whole interactions, as a list of what the model says; the
// replies between are the tool's. Some call the tool as one should. Some copy the
// problem into the call, which is no Python, and then correct themselves or give up;
// some answer at once. A model that has seen them knows all ways; reinforcement
// learning finds out which one pays.
//
// The number of numbers follows the law of ListSum. Thread-safety: immutable.
#ifndef PACE_TASK_PRODUCT_H_
#define PACE_TASK_PRODUCT_H_

#include "task/list_lengths.h"
#include "task/synthetic_task.h"

namespace pace {

class Product final : public SyntheticTask {
 public:
  // REQUIRES: options.Validate().ok()
  explicit Product(const TaskOptions& options);

  std::string_view name() const override { return "product"; }
  VerifierMode verifier() const override { return VerifierMode::kRetool; }
  std::vector<std::string> Demonstration(const Exercise& exercise, double worked_share,
                                         double u) const override;

 protected:
  int64_t num_kinds() const override { return lengths_.num_kinds(); }
  int64_t KindAt(double u) const override { return lengths_.KindAt(u); }
  Exercise Draw(int64_t kind, const ExerciseDraw& draw) const override;
  std::string Describe(int64_t kind) const override { return lengths_.Describe(kind); }

 private:
  ListLengths lengths_;
  int64_t modulus_;
};

}  // namespace pace

#endif  // PACE_TASK_PRODUCT_H_
