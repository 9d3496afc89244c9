// PoolLoop times PoolState at a steady occupancy: every put is followed by a
// draw. A step begins every 64 draws, so that draw order lowest_score pays for
// its ranking as often as in a run.
//
// Thread-safety: none.
#ifndef PACE_BENCH_POOL_LOOP_H_
#define PACE_BENCH_POOL_LOOP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "config/run_options.h"
#include "control/admission_policy.h"
#include "core/staleness.h"
#include "pool/pool_state.h"

namespace pace {

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

}  // namespace pace

#endif  // PACE_BENCH_POOL_LOOP_H_
