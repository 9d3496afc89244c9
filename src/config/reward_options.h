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
  int64_t num_retries = 3;
  RewardFailure on_error = RewardFailure::kFailGroup;

  [[nodiscard]] std::vector<Field> Fields();
};

// `python:FILE:NAME`, as task.verifier names a function, tools.use and admission.policy a class.
struct PythonName {
  std::string file;
  std::string name;
};

// None where `value` does not begin with "python:"; an error, of the setting `key`, where it does
// and goes on wrongly.
Result<std::optional<PythonName>> PythonNameOf(std::string_view key, std::string_view value);

// A reward that is computed outside of pace, as task.verifier names it.
struct OwnReward {
  PythonName python = {};  // a function, or
  std::string url = {};    // a server
};

// None where `verifier` is a mode of pace's own.
Result<std::optional<OwnReward>> OwnRewardOf(std::string_view verifier);

}  // namespace pace

#endif  // PACE_CONFIG_REWARD_OPTIONS_H_
