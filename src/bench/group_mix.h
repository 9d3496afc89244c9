// Groups for the benchmarks: made beforehand, many enough that neither caches
// nor branch prediction learn them by heart.
#ifndef PACE_BENCH_GROUP_MIX_H_
#define PACE_BENCH_GROUP_MIX_H_

#include <cstdint>
#include <vector>

#include "core/staleness.h"
#include "core/version.h"

namespace pace {

// Groups of eight responses as step `step` would draw them: finished up to two
// steps ago, begun up to three before that, six in ten interrupted by a sync
// and so with a prefix score. Summaries only; their members are gone.
std::vector<GroupSummary> MakeGroupMix(int64_t num_groups, PolicyVersion step);

// The same group, had everything about it happened `num_steps` later.
GroupSummary Later(GroupSummary group, int64_t num_steps);

}  // namespace pace

#endif  // PACE_BENCH_GROUP_MIX_H_
