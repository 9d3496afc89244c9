// Limits and isolation of the programs that a sandbox runs.
#ifndef PACE_SANDBOX_SANDBOX_OPTIONS_H_
#define PACE_SANDBOX_SANDBOX_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/tools_options.h"
#include "core/clock.h"
#include "core/status.h"

namespace pace {

enum class SandboxMode {
  // Namespaces, seccomp and limits; Start fails without them.
  kIsolated,
  // Limits alone: the program sees the caller's files and network. For trusted programs on
  // machines without isolation.
  kUnsafe,
};

struct SandboxOptions {
  SandboxMode mode = SandboxMode::kIsolated;

  // The interpreter; a bare name is looked up in PATH.
  std::string python = "python3";
  // Modules that warm interpreters have imported; those that this Python lacks
  // are left out. A program that names none of them gets an interpreter without.
  std::vector<std::string> warm_modules = {"sympy", "numpy"};

  // Concurrent programs; more wait.
  int64_t max_programs = 16;
  Seconds timeout{30};
  // Of a whole program, its kernel memory and /tmp included, by a control group if available.
  // Otherwise of each process, by the kernel; their sum is then checked every 50 ms if /proc can
  // be mounted.
  int64_t memory_bytes = int64_t{1024} << 20;
  // Whether to use control groups if they are available.
  bool control_groups = true;
  // Private /tmp of one program, /dev/shm included.
  int64_t tmp_bytes = int64_t{128} << 20;
  int64_t max_file_bytes = int64_t{64} << 20;
  int64_t max_open_files = 256;
  // Processes and threads of one program.
  int64_t max_processes = 64;
  // Of each stream; further output is read and dropped.
  int64_t max_output_bytes = int64_t{1} << 20;

  [[nodiscard]] Status Validate() const;
};

// The bounds of a sandbox on this machine, as the settings name them.
SandboxOptions SandboxOptionsFrom(const ToolsOptions& options);

}  // namespace pace

#endif  // PACE_SANDBOX_SANDBOX_OPTIONS_H_
