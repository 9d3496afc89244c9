// Loops that time the two calls of PaceAdmission: a verdict, and the beginning
// of a step. Both run in the middle of a run: full windows, prefix scores
// present, a budget above 0. A call costs much the same every time, so each
// repetition is the median over short stretches: one in which the thread lost
// its core does not count.
//
// Thread-safety: none.
#ifndef PACE_BENCH_ADMISSION_LOOPS_H_
#define PACE_BENCH_ADMISSION_LOOPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "control/admission_policy.h"
#include "core/staleness.h"

namespace pace {

class VerdictLoop {
 public:
  explicit VerdictLoop(int64_t window);
  // Nanoseconds per Judge.
  double Run(double seconds) const;

 private:
  const std::vector<GroupSummary> groups_;
  const std::unique_ptr<AdmissionPolicy> policy_;
};

class BeginStepLoop {
 public:
  explicit BeginStepLoop(int64_t window);
  // Microseconds per BeginStep that takes in the 12 to 100 groups of the step
  // before. Judging and observing them is not timed.
  double Run(double seconds);

 private:
  const std::vector<GroupSummary> groups_;
  const std::unique_ptr<AdmissionPolicy> policy_;
  int64_t num_steps_ = 0;
  size_t next_group_ = 0;
};

}  // namespace pace

#endif  // PACE_BENCH_ADMISSION_LOOPS_H_
