// CoordinatorLoop drives a Coordinator as fast as it answers: commands are
// carried out at once, and members of running groups finish in random order.
//
// The trainer takes as long as production takes for 1.1 batches, so the pool
// fills, PACE has a budget, and about one group in ten is rejected.
//
// With `pool_groups` above 0 the pool is brought to that many groups over many
// steps, and from then on a step takes until they are there again. The policy's
// target is above, so it scores and observes but rejects nothing: a response
// then means the same work at every size.
//
// Thread-safety: none.
#ifndef PACE_BENCH_COORDINATOR_LOOP_H_
#define PACE_BENCH_COORDINATOR_LOOP_H_

#include <cstdint>
#include <vector>

#include "coordinator/coordinator.h"

namespace pace {

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

#endif  // PACE_BENCH_COORDINATOR_LOOP_H_
