// Sizes as people type them.
#ifndef PACE_TERMINAL_BYTE_SIZE_H_
#define PACE_TERMINAL_BYTE_SIZE_H_

#include <cstdint>
#include <string_view>

#include "core/status.h"

namespace pace {

// "5GB", "512MiB", "100000": KB, MB, GB count thousands, KiB, MiB, GiB 1024;
// capitals do not matter. At least 1. `option` is named in errors.
Result<int64_t> ParseByteSize(std::string_view option, std::string_view text);

}  // namespace pace

#endif  // PACE_TERMINAL_BYTE_SIZE_H_
