// ListLengths: how many numbers the lists of a generated task have.
//
// n lies between min_numbers and max_numbers, P(n) proportional to
// exp(-n / length_scale): long lists are rarer, harder, and longer to work out. A
// task's kind k is the length min_numbers + k. Thread-safety: immutable.
#ifndef PACE_TASK_LIST_LENGTHS_H_
#define PACE_TASK_LIST_LENGTHS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/task_options.h"

namespace pace {

class ListLengths {
 public:
  // REQUIRES: options.Validate().ok()
  explicit ListLengths(const TaskOptions& options);

  int64_t num_kinds() const { return static_cast<int64_t>(cumulative_.size()); }
  // The kind at `u`, uniform in [0, 1).
  int64_t KindAt(double u) const;
  int64_t NumbersOf(int64_t kind) const { return min_numbers_ + kind; }
  std::string Describe(int64_t kind) const;

 private:
  int64_t min_numbers_;
  std::vector<double> cumulative_;  // P(at most min_numbers + kind numbers)
};

}  // namespace pace

#endif  // PACE_TASK_LIST_LENGTHS_H_
