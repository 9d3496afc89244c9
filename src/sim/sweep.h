// Sweep: simulates a grid of settings on all cores and recommends one.
//
//   Result<SweepAxis> axis = ParseSweepAxis("supply.threshold=2,4,8");
//   Result<SweepResult> sweep = RunSweep(settings, {*axis}, {});
//   sweep->advice;
//
// Every run is independent, so the result does not depend on the number of
// threads. Thread-safety: a pure function of its arguments. Stable: docs/library.md.
#ifndef PACE_SIM_SWEEP_H_
#define PACE_SIM_SWEEP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "core/status.h"
#include "sim/simulation.h"

namespace pace {

struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

// "key=v1,v2,...". The special key `method` takes names of config/methods.h.
Result<SweepAxis> ParseSweepAxis(std::string_view text);

struct SweepOptions {
  int64_t num_threads = 0;  // 0 = as many as there are cores
  // Called as runs end, with the runs done and the runs to do, from one thread
  // at a time.
  std::function<void(int64_t, int64_t)> progress;
};

struct SweepRow {
  std::vector<std::string> assignments;  // "key=value", one per axis
  SimTotals totals;
  bool on_front = false;  // no other row is better in all three respects
};

struct SweepResult {
  std::vector<SweepRow> rows;  // in grid order, the last axis fastest
  size_t best = 0;
  std::string advice;  // one line: the setting to take and what it trades
};

// The rules on which rows are compared, each better when smaller.
struct SweepCost {
  double seconds_per_prompt = 0;  // of trained prompts
  double waiting = 0;             // waiting staleness of trained groups
  double wasted = 0;              // share of generated tokens never trained on
  static SweepCost Of(const SimTotals& totals);
};

// Settings that break a rule are an error, before anything runs.
Result<SweepResult> RunSweep(const Settings& settings, const std::vector<SweepAxis>& axes,
                             const SweepOptions& options);

// Marks the Pareto front and picks the row with the least waiting staleness
// among those within 2 % of the shortest time per trained prompt.
// REQUIRES: rows are not empty.
void RankRows(SweepResult& result);

}  // namespace pace

#endif  // PACE_SIM_SWEEP_H_
