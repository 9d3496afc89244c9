// A benchmark's JSON (bench/bench_report.h) as a table, for a terminal.
//
// Thread-safety: a function of its argument.
#ifndef PACE_CLI_BENCH_TABLE_H_
#define PACE_CLI_BENCH_TABLE_H_

#include <string>
#include <string_view>

#include "core/status.h"

namespace pace {

// One row for each measurement: median, interquartile range, unit and limit.
Result<std::string> BenchTable(std::string_view json);

}  // namespace pace

#endif  // PACE_CLI_BENCH_TABLE_H_
