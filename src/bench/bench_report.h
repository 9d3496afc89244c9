// The JSON object that every benchmark prints: what, on which machine, with
// which settings, every measurement with its limit, and whether all hold.
#ifndef PACE_BENCH_BENCH_REPORT_H_
#define PACE_BENCH_BENCH_REPORT_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measurement.h"
#include "core/json_writer.h"

namespace pace {

// `settings` writes a value; `more` writes further keys and their values.
std::string BenchReport(std::string_view bench, const std::vector<Measurement>& measurements,
                        const std::function<void(JsonWriter&)>& settings,
                        const std::function<void(JsonWriter&)>& more);

}  // namespace pace

#endif  // PACE_BENCH_BENCH_REPORT_H_
