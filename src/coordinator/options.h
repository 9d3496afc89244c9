// What a coordinator is told once.
#ifndef PACE_COORDINATOR_OPTIONS_H_
#define PACE_COORDINATOR_OPTIONS_H_

#include <cstdint>

#include "config/run_options.h"
#include "config/settings.h"

namespace pace {

struct CoordinatorOptions {
  int64_t batch = 12;
  int64_t group_size = 12;
  int64_t num_steps = 300;
  int64_t sync_interval = 1;
  int64_t checkpoint_every = 0;  // steps; 0 = never
  int64_t evaluate_every = 0;    // steps; 0 = never
  Requeue requeue = Requeue::kLost;
  int64_t max_attempts = 3;
  // The last member of a group is a greedy response, which no step trains on: it has no
  // part in the group's staleness.
  bool greedy_last = false;
  PoolOptions pool{};

  static CoordinatorOptions Of(const Settings& settings);
};

}  // namespace pace

#endif  // PACE_COORDINATOR_OPTIONS_H_
