// ReadFile: a whole file as one string, with a bound.
#ifndef PACE_TEXT_READ_FILE_H_
#define PACE_TEXT_READ_FILE_H_

#include <cstddef>
#include <string>

#include "core/status.h"

namespace pace {

// A file that cannot be read, or is larger than `max_bytes`, is an error that
// names it.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);

}  // namespace pace

#endif  // PACE_TEXT_READ_FILE_H_
