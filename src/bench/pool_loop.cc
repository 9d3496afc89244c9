#include "bench/pool_loop.h"

#include "bench/group_mix.h"
#include "bench/machine.h"
#include "bench/measurement.h"
#include "core/check.h"
#include "core/clock.h"

namespace pace {
namespace {

constexpr int64_t kBatch = 64;
constexpr int64_t kMixGroups = 1024;
constexpr PolicyVersion kStep(100);

}  // namespace

PoolLoop::PoolLoop(int64_t num_groups, DrawOrder order)
    : mix_(MakeGroupMix(kMixGroups, kStep)),
      policy_(MakeAdmissionPolicy({}, kBatch, /*seed=*/1)),
      pool_(PoolOptions{.draw_order = order}) {
  policy_->BeginStep(kStep, {.occupancy = num_groups, .batch = kBatch});
  const int64_t bytes_before = AllocatedBytes();
  while (pool_.occupancy() < num_groups) Put();
  bytes_per_group_ =
      static_cast<double>(AllocatedBytes() - bytes_before) / static_cast<double>(num_groups);
}

void PoolLoop::Put() {
  GroupSummary summary = mix_[static_cast<size_t>(num_put_ % kMixGroups)];
  summary.id = GroupId(num_put_++);
  const std::vector<Eviction> evictions =
      pool_.Put(PooledGroup(summary, {}, /*keep_members=*/false), *policy_);
  PACE_CHECK(evictions.empty(), "a pool without bounds evicted");
}

double PoolLoop::Run(double seconds) {
  const WallClock clock;
  int64_t num_pairs = 0;
  double elapsed = 0;
  while (elapsed < seconds || num_pairs == 0) {
    pool_.OnStepBegan();
    for (int64_t i = 0; i < kBatch; ++i) {
      Put();
      Keep(pool_.Draw(*policy_));
    }
    num_pairs += kBatch;
    elapsed = clock.Now().count();
  }
  return static_cast<double>(num_pairs) / elapsed;
}

}  // namespace pace
