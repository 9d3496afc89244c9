// Settings of rewards that are computed outside of pace. Fields() documents each.
#ifndef PACE_CONFIG_REWARD_OPTIONS_H_
#define PACE_CONFIG_REWARD_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

enum class RewardFailure { kFailGroup, kZero, kStop };

struct RewardOptions {
  std::string python = "python3";
  int64_t num_workers = 2;
  int64_t batch = 1;
  double timeout = 10;
  double start_timeout = 60;
  int64_t memory_mib = 4096;
  RewardFailure on_error = RewardFailure::kFailGroup;

  [[nodiscard]] std::vector<Field> Fields();
};

// `python:FILE:FUNCTION`, as task.verifier names a reward of one's own.
struct PythonReward {
  std::string file;
  std::string function;
};

// None where `verifier` does not begin with "python:"; an error where it does and goes on wrongly.
Result<std::optional<PythonReward>> PythonRewardOf(std::string_view verifier);

}  // namespace pace

#endif  // PACE_CONFIG_REWARD_OPTIONS_H_
