// The lines of a JSON Lines or Parquet file, in bounded memory.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_TASK_LINE_FILE_H_
#define PACE_TASK_LINE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/status.h"

namespace pace {

// Longer lines are refused.
inline constexpr size_t kMaxDataLineBytes = size_t{16} << 20;

// A line without its end, and its number from 1.
using LineTaker = std::function<Status(std::string_view line, int64_t number)>;

// Hands every line that is not blank to `take`, and stops at its first error. A
// byte order mark at the beginning is passed over. The rows of a file that ends in .parquet come as
// JSON lines from `python`, an interpreter with pyarrow.
Status ReadLines(const std::string& path, const std::string& python, const LineTaker& take);
// The same from the file's content.
Status CutLines(std::string_view text, const std::string& name, const LineTaker& take);

}  // namespace pace

#endif  // PACE_TASK_LINE_FILE_H_
