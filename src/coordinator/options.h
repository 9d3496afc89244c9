// CoordinatorOptions: what a coordinator is told at its construction. Stable: docs/library.md.
#ifndef PACE_COORDINATOR_OPTIONS_H_
#define PACE_COORDINATOR_OPTIONS_H_

#include <cstdint>
#include <set>

#include "config/run_options.h"
#include "config/settings.h"
#include "core/version.h"

namespace pace {

// The versions at which a recorded run was saved or evaluated. A resumed run may have other
// settings, so a replay takes them from the record.
struct RecordedVersions {
  int64_t last = -1;  // of the record; later versions follow the settings
  std::set<int64_t> versions = {};
};

struct CoordinatorOptions {
  int64_t batch = 12;
  int64_t group_size = 12;
  int64_t num_steps = 300;
  int64_t sync_interval = 1;
  int64_t checkpoint_every = 0;  // steps; 0 = never
  int64_t evaluate_every = 0;    // steps; 0 = never
  bool evaluate_at_start = true;
  // Also save at the end of the run when checkpoint_every is 0.
  bool save_at_end = false;
  RecordedVersions saved = {};
  RecordedVersions evaluated = {};
  Requeue requeue = Requeue::kLost;
  int64_t max_attempts = 3;
  // The last member of a group is a greedy response. No step trains on it, and it does not
  // count in the group's staleness.
  bool greedy_last = false;
  PoolOptions pool{};

  static CoordinatorOptions Of(const Settings& settings);

  // Whether this version is saved, or evaluated, when its step finishes.
  bool SavesAt(PolicyVersion version) const { return Due(version, checkpoint_every, saved); }
  bool EvaluatesAt(PolicyVersion version) const;
  bool SavesAtEnd() const { return save_at_end || checkpoint_every > 0; }

 private:
  static bool Due(PolicyVersion version, int64_t every, const RecordedVersions& recorded);
};

}  // namespace pace

#endif  // PACE_COORDINATOR_OPTIONS_H_
