// CandidateRuns: simulations of one candidate with several seeds, until they have settled.
//
// A run starts with an empty pool, and its staleness may grow for a long time. So only the second
// half of a run is measured, and all candidates are simulated again with twice the steps until
// the third and the last quarter of each agree. All have the same seeds and steps: they meet the
// same prompts, and differences are taken seed by seed.
//
//   Result<std::vector<CandidateRuns>> runs = MeasureCandidates(settings, Candidates(), {});
//
// Thread-safety: pure functions; the result does not depend on the number of threads.
#ifndef PACE_ADVISE_CANDIDATE_RUNS_H_
#define PACE_ADVISE_CANDIDATE_RUNS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "advise/candidates.h"
#include "config/settings.h"
#include "core/status.h"
#include "record/step_metrics.h"

namespace pace {

// Means over the second half of one simulation.
struct SeedResult {
  double step_seconds = 0;
  double token_seconds = 0;  // time over the policy tokens trained on
  double lag = 0;            // waiting + generation staleness of trained groups
  double wasted = 0;         // share of generated tokens that were rejected, evicted or lost
  double trainer_idle = 0;   // share of the time in which the trainer waits for groups
};

struct CandidateRuns {
  Candidate candidate;
  std::vector<std::string> overrides;  // that give the settings this controller
  std::vector<SeedResult> seeds;       // the same seeds for every candidate
  int64_t num_steps = 0;               // of each simulation
  bool settled = false;
};

struct MeasureOptions {
  int64_t num_seeds = 5;     // run.seed and those after it
  int64_t first_steps = 80;  // of the first simulations
  int64_t max_steps = 320;   // doubled up to this
  int64_t num_threads = 0;   // 0 = as many as there are cores
  // Called as simulations end, with those done and those known to be needed, from one thread at
  // a time.
  std::function<void(int64_t, int64_t)> progress = {};
};

Result<std::vector<CandidateRuns>> MeasureCandidates(const Settings& settings,
                                                     const std::vector<Candidate>& candidates,
                                                     const MeasureOptions& options);

// The parts, for tests. REQUIRES: at least four rows per run.
// `num_responses`: trained on in each step.
SeedResult SecondHalf(std::span<const MetricsRow> rows, int64_t num_responses);
// Whether the third and the last quarter, averaged over the runs, differ by at most 2 % in
// seconds per step and by at most 0.1 or 5 % in lag.
bool HasSettled(std::span<const std::vector<MetricsRow>> runs);

}  // namespace pace

#endif  // PACE_ADVISE_CANDIDATE_RUNS_H_
