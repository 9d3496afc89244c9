// Settings of the programs that responses may have run. Fields() documents each.
#ifndef PACE_CONFIG_TOOLS_OPTIONS_H_
#define PACE_CONFIG_TOOLS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

enum class ToolUse { kNone, kCodeInterpreter, kEnvironment };
enum class SandboxKind { kIsolated, kUnsafe };

struct ToolsOptions {
  std::string use = "none";
  int64_t max_assistant_turns = 8;
  int64_t max_tool_turns = 8;
  int64_t max_reply = 256;
  bool reuse = false;

  SandboxKind sandbox = SandboxKind::kIsolated;
  std::string url;

  std::string python = "python3";
  std::vector<std::string> warm_modules = {"sympy", "numpy"};

  int64_t max_programs = 16;
  double timeout = 30;
  int64_t memory_mib = 1024;
  int64_t tmp_mib = 128;
  int64_t max_file_mib = 64;
  int64_t max_processes = 64;

  int64_t num_workers = 2;
  double start_timeout = 60;

  ToolUse kind() const;
  std::vector<Field> Fields();
  [[nodiscard]] Status Validate() const;
};

}  // namespace pace

#endif  // PACE_CONFIG_TOOLS_OPTIONS_H_
