#include "record/build_info.h"

#include <fstream>
#include <map>
#include <string>

namespace pace {
namespace {

// Linux on AArch64 names a core by numbers; these are the servers' ones.
std::string ArmModel(const std::string& part) {
  static const std::map<std::string, std::string> names = {
      {"0x41:0xd08", "Arm Cortex-A72"},  {"0x41:0xd0c", "Arm Neoverse N1"},
      {"0x41:0xd40", "Arm Neoverse V1"}, {"0x41:0xd49", "Arm Neoverse N2"},
      {"0x41:0xd4f", "Arm Neoverse V2"}, {"0x41:0xd84", "Arm Neoverse V3"},
      {"0x41:0xd8e", "Arm Neoverse N3"}, {"0xc0:0xac3", "AmpereOne"}};
  const auto name = names.find(part);
  return name == names.end() ? "Arm core " + part : name->second;
}

}  // namespace

std::string_view PaceVersion() {
  return PACE_VERSION;
}
std::string_view PaceCommit() {
  return PACE_COMMIT;
}

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  std::string arm_part;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) arm_part = value;
    if (line.starts_with("CPU part")) return ArmModel(arm_part + ":" + value);
  }
  return "unknown";
}

}  // namespace pace
