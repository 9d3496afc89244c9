// The loops that `pace bench controller` times, and the groups that they work on.
//
// Thread-safety: none.
#ifndef PACE_BENCH_CONTROLLER_LOOPS_H_
#define PACE_BENCH_CONTROLLER_LOOPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "config/run_options.h"
#include "control/admission_policy.h"
#include "coordinator/coordinator.h"
#include "core/staleness.h"
#include "core/version.h"
#include "pool/pool_state.h"

namespace pace {

// Groups of eight responses as step `step` would draw them: finished up to two
// steps ago, begun up to three before that, six in ten interrupted by a sync
// and so with a prefix score. Summaries only; their members are gone.
std::vector<GroupSummary> MakeGroupMix(int64_t num_groups, PolicyVersion step);

// The same group, had everything about it happened `num_steps` later.
GroupSummary Later(GroupSummary group, int64_t num_steps);

// VerdictLoop and BeginStepLoop time the two calls of PaceAdmission in the middle of a run:
// full windows, prefix scores present, a budget above 0. A call costs much the same every
// time, so a repetition is the median over short stretches: a stretch in which the thread
// lost its core does not count.
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

// PoolLoop times PoolState at a steady occupancy: every put is followed by a draw. A step
// begins every 64 draws, so that draw order lowest_score pays for its ranking as often as
// in a run.
class PoolLoop {
 public:
  PoolLoop(int64_t num_groups, DrawOrder order);
  // Pairs of put and draw per second.
  double Run(double seconds);
  // Memory the pool took for each group it holds.
  double bytes_per_group() const { return bytes_per_group_; }

 private:
  void Put();

  const std::vector<GroupSummary> mix_;
  const std::unique_ptr<AdmissionPolicy> policy_;
  PoolState pool_;
  int64_t num_put_ = 0;
  double bytes_per_group_ = 0;
};

// CoordinatorLoop drives a Coordinator as fast as it answers: commands are carried out at
// once, and members of running groups finish in random order.
//
// The trainer takes as long as production takes for 1.1 batches, so the pool fills, PACE
// has a budget, and about one group in ten is rejected.
//
// With `pool_groups` above 0 the pool is first filled to that many groups over many steps;
// from then on a step takes until it is full again. The policy's target is above, so it
// scores and observes but rejects nothing: a response means the same work at every size.
struct CoordinatorLoopOptions {
  int64_t batch = 64;
  int64_t group_size = 8;
  int64_t num_workers = 16;
  int64_t groups_per_worker = 16;
  double threshold = 8;     // of supply, while pool_groups is 0
  int64_t pool_groups = 0;  // 0: as many as the policy leaves
};

class CoordinatorLoop {
 public:
  explicit CoordinatorLoop(const CoordinatorLoopOptions& options);
  // ResponseFinished events per second; the other events are in the time.
  double Run(double seconds);

  const Coordinator& coordinator() const { return coordinator_; }
  // Memory taken for each group in the pool; of interest where there are many.
  double bytes_per_pooled_group() const { return bytes_per_pooled_group_; }

 private:
  struct Running {
    GroupId group;
    WorkerId worker;
    PolicyVersion begun;
    int64_t next_member = 0;
  };

  void Send(const Event& event);
  // Sends what is due: a sync, the end of a step, else a response.
  void Tick();
  void FinishSomeResponse();
  bool StepIsDone() const;

  const CoordinatorLoopOptions options_;
  const int64_t bytes_before_;
  Coordinator coordinator_;

  std::vector<double> noise_;  // in (0, 1)
  uint64_t order_ = 88172645463325252;
  std::vector<PolicyVersion> worker_versions_;
  std::vector<Running> running_;
  std::vector<SyncWeights> syncs_;
  bool filling_ = false;  // the pool, to pool_groups
  int64_t num_responses_ = 0;
  int64_t step_began_at_ = 0;  // in responses
  Event response_ = ResponseFinished{};
  double bytes_per_pooled_group_ = 0;
};

// Memory a coordinator takes for each running group of that size.
double BytesPerRunningGroup(int64_t num_groups, int64_t group_size);

}  // namespace pace

#endif  // PACE_BENCH_CONTROLLER_LOOPS_H_
