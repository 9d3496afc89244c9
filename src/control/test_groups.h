// Groups for tests: random but reproducible.
#ifndef PACE_CONTROL_TEST_GROUPS_H_
#define PACE_CONTROL_TEST_GROUPS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "core/staleness.h"

namespace pace {

// A stream of small random numbers.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : random_(seed, 0x7e57) {}
  // Uniform in [0, n).
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_.Bits(next_++) % static_cast<uint64_t>(n));
  }
  double Unit() { return random_.Uniform(next_++); }
  bool Chance(double p) { return Unit() < p; }

 private:
  const CounterRandom random_;
  uint64_t next_ = 0;
};

// Owns the members its summary points at.
struct TestGroup {
  std::vector<MemberSummary> members;
  GroupSummary summary;
};

// A group drawn at `step`, at most `max_lag` steps old. Prefix scores come from
// a coarse grid, so that ties are common.
inline TestGroup RandomGroup(TestRandom& random, GroupId id, PolicyVersion step,
                             int64_t max_lag = 6) {
  TestGroup group;
  const int64_t num_members = 1 + random.Below(5);
  int64_t assembled = 0;
  for (int64_t m = 0; m < num_members; ++m) {
    VersionRuns runs;
    int64_t version = std::max<int64_t>(0, step.step() - random.Below(max_lag + 1));
    const int64_t num_runs = 1 + random.Below(3);
    for (int64_t r = 0; r < num_runs; ++r) {
      runs.Append(PolicyVersion(version), 1 + random.Below(4));
      version = std::min(step.step(), version + random.Below(2));
    }
    const int64_t completed = std::min(step.step(), version + random.Below(3));
    assembled = std::max(assembled, completed);
    std::optional<double> prefix;
    if (random.Chance(0.6)) prefix = 0.01 * static_cast<double>(random.Below(20));
    group.members.push_back(MemberSummary::Of(runs.segments(), PolicyVersion(completed), prefix));
  }
  group.summary =
      GroupSummary::Of(id, PolicyVersion(assembled), group.members, 100 + random.Below(1000));
  return group;
}

}  // namespace pace

#endif  // PACE_CONTROL_TEST_GROUPS_H_
