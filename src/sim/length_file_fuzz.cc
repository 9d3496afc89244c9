// Fuzzes the reader of response lengths.
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "sim/workload.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lengths = pace::ParseLengths(text, "fuzz");
  if (!lengths.ok()) {
    PACE_CHECK(lengths.status().message().find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  for (const int64_t length : *lengths) PACE_CHECK(length >= 1, "length ", length);
  return 0;
}
