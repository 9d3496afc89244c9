// Which pace this is, and what it runs on. Only build_info.cc is compiled again when it changes.
#ifndef PACE_RECORD_BUILD_INFO_H_
#define PACE_RECORD_BUILD_INFO_H_

#include <string>
#include <string_view>

namespace pace {

std::string_view PaceVersion();  // "0.1.0"
std::string_view PaceCommit();   // "unknown" outside a git checkout
std::string CpuModel();          // "unknown" where the system does not say

}  // namespace pace

#endif  // PACE_RECORD_BUILD_INFO_H_
