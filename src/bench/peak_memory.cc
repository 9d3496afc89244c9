#include "bench/peak_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace pace {
namespace {

// A line of /proc/self/status, "VmHWM:    1234 kB".
std::optional<int64_t> StatusBytes(std::string_view field) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    int64_t kilobytes = 0;
    if (word == field && file >> kilobytes) return 1024 * kilobytes;
  }
  return std::nullopt;
}

// Sets the peak back to what is resident now.
bool ResetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << "5" << std::flush);
}

}  // namespace

PeakMemory::PeakMemory() {
  malloc_trim(0);
  if (ResetPeak()) before_ = StatusBytes("VmRSS:");
}

std::optional<int64_t> PeakMemory::Bytes() const {
  const std::optional<int64_t> peak = StatusBytes("VmHWM:");
  if (!before_.has_value() || !peak.has_value()) return std::nullopt;
  return std::max<int64_t>(0, *peak - *before_);
}

}  // namespace pace
