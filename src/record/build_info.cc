#include "record/build_info.h"

#include <fstream>

namespace pace {

std::string_view PaceVersion() {
  return PACE_VERSION;
}
std::string_view PaceCommit() {
  return PACE_COMMIT;
}

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace pace
