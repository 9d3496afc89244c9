// Made-up runs with the shape of real ones, so that reports can be tested
// without a simulator.
#ifndef PACE_TESTS_REPORT_SAMPLE_RUNS_H_
#define PACE_TESTS_REPORT_SAMPLE_RUNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "record/run_reader.h"

namespace pace {

// One run of "sync", "async", "raw", "effective" or "stale-4". The same
// arguments give the same run.
RunData SampleRun(const std::string& method, int64_t num_steps);

// The same with a model that learns, evaluated on these benchmarks before the
// first step and every `num_steps / 12` steps.
RunData SampleTrainingRun(const std::string& method, int64_t num_steps,
                          const std::vector<std::string>& benchmarks);

// Without decisions, as record level metrics leaves it.
RunData SampleRunWithoutDecisions(const std::string& method, int64_t num_steps);

}  // namespace pace

#endif  // PACE_TESTS_REPORT_SAMPLE_RUNS_H_
