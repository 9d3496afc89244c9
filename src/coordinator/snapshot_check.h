// Whether the parts of a snapshot agree with each other and with the run that
// is to take it up: every group in one place, credits within the bound, versions
// in order, nothing stuck. What passes restores into a coordinator whose
// invariants hold.
#ifndef PACE_COORDINATOR_SNAPSHOT_CHECK_H_
#define PACE_COORDINATOR_SNAPSHOT_CHECK_H_

#include <cstdint>
#include <optional>

#include "coordinator/options.h"
#include "coordinator/snapshot.h"
#include "core/status.h"

namespace pace {

// What the run asks of a snapshot.
struct SnapshotRules {
  const CoordinatorOptions& options;
  bool needs_members = false;              // of the admission policy
  std::optional<int64_t> max_outstanding;  // of the supply policy
};

// An error names the part and the rule, in one line.
Status CheckSnapshot(const CoordinatorSnapshot& snapshot, const SnapshotRules& rules);

}  // namespace pace

#endif  // PACE_COORDINATOR_SNAPSHOT_CHECK_H_
