// The rows of a Parquet file as JSON lines, from a Python interpreter with pyarrow.
//
//   PACE_RETURN_IF_ERROR(ReadParquet("train.parquet", "python3",
//                                    [&](std::string_view line, int64_t) { return Add(line); }));
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TASK_PARQUET_FILE_H_
#define PACE_TASK_PARQUET_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pace {

// Hands every row to `take`, numbered from 1, and stops at its first error. Where the interpreter
// or pyarrow is missing, or the file cannot be read, the error says so.
Status ReadParquet(const std::string& path, const std::string& python,
                   const std::function<Status(std::string_view line, int64_t number)>& take);

// The script that the interpreter runs: scripts/parquet_to_jsonl.py.
std::string_view ParquetScript();

}  // namespace pace

#endif  // PACE_TASK_PARQUET_FILE_H_
