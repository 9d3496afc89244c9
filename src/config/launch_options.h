// Settings of how a run is started on several machines (`pace launch`). The number of engines and
// trainer ranks is the cluster's (cluster_options.h), which the simulator reads too.
// Fields() documents each.
#ifndef PACE_CONFIG_LAUNCH_OPTIONS_H_
#define PACE_CONFIG_LAUNCH_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"

namespace pace {

enum class EngineProgram { kVllm, kSglang, kPace };

struct LaunchOptions {
  EngineProgram engine = EngineProgram::kVllm;
  std::string name = "pace";
  std::string folder = {};
  std::string pace = "pace";
  std::string python = "python3";
  std::vector<std::string> engine_options = {};
  int64_t port = 8000;
  int64_t master_port = 29500;
  int64_t cpus = 0;
  int64_t max_restarts = 3;

  std::string time = {};
  std::vector<std::string> sbatch = {};

  std::string image = {};
  std::string engine_image = {};
  std::string volume = {};

  [[nodiscard]] std::vector<Field> Fields();
};

}  // namespace pace

#endif  // PACE_CONFIG_LAUNCH_OPTIONS_H_
