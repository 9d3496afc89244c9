// The experiments of the folder `experiments`, inside the program as presets are.
//
// Thread-safety: constants.
#ifndef PACE_COMPARE_BUILT_IN_EXPERIMENTS_H_
#define PACE_COMPARE_BUILT_IN_EXPERIMENTS_H_

#include <span>
#include <string_view>

namespace pace {

struct BuiltInExperiment {
  std::string_view name;  // of the file, without its ending
  std::string_view yaml;
};

// By name.
std::span<const BuiltInExperiment> BuiltInExperiments();

}  // namespace pace

#endif  // PACE_COMPARE_BUILT_IN_EXPERIMENTS_H_
