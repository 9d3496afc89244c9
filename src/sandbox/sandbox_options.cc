#include "sandbox/sandbox_options.h"

#include <cctype>

#include "core/printable.h"

namespace pace {
namespace {

Status CheckAtLeast(const char* name, int64_t value, int64_t minimum) {
  if (value >= minimum) return Status::Ok();
  return InvalidArgument("tools.", name, " = ", value, ": must be >= ", minimum);
}

// Module names become code in the interpreter.
bool IsModuleName(const std::string& name) {
  if (name.empty() || name.front() == '.' || name.back() == '.') return false;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') return false;
  }
  return true;
}

}  // namespace

Status SandboxOptions::Validate() const {
  constexpr int64_t kMiB = int64_t{1} << 20;
  PACE_RETURN_IF_ERROR(CheckAtLeast("max_programs", max_programs, 1));
  if (max_programs > 4096) {
    return InvalidArgument("tools.max_programs = ", max_programs, ": must be <= 4096");
  }
  if (!(timeout.count() > 0 && timeout.count() <= 86'400)) {
    return InvalidArgument("tools.timeout = ", timeout.count(), ": must be > 0 and <= 86400 s");
  }
  // An interpreter with its modules takes a good hundred MiB of addresses.
  PACE_RETURN_IF_ERROR(CheckAtLeast("memory_bytes", memory_bytes, 64 * kMiB));
  PACE_RETURN_IF_ERROR(CheckAtLeast("tmp_bytes", tmp_bytes, 4096));
  PACE_RETURN_IF_ERROR(CheckAtLeast("max_file_bytes", max_file_bytes, 4096));
  PACE_RETURN_IF_ERROR(CheckAtLeast("max_open_files", max_open_files, 16));
  PACE_RETURN_IF_ERROR(CheckAtLeast("max_processes", max_processes, 1));
  PACE_RETURN_IF_ERROR(CheckAtLeast("max_output_bytes", max_output_bytes, 1));
  if (python.empty()) return InvalidArgument("tools.python: must name an interpreter");
  for (const std::string& module : warm_modules) {
    if (!IsModuleName(module)) {
      return InvalidArgument("tools.warm_modules: '", Printable(module),
                             "': must be a module's name, such as sympy");
    }
  }
  return Status::Ok();
}

SandboxOptions SandboxOptionsFrom(const ToolsOptions& options) {
  SandboxOptions sandbox;
  sandbox.mode =
      options.sandbox == SandboxKind::kUnsafe ? SandboxMode::kUnsafe : SandboxMode::kIsolated;
  sandbox.python = options.python;
  sandbox.warm_modules = options.warm_modules;
  sandbox.max_programs = options.max_programs;
  sandbox.timeout = Seconds(options.timeout);
  sandbox.memory_bytes = options.memory_mib << 20;
  sandbox.tmp_bytes = options.tmp_mib << 20;
  sandbox.max_file_bytes = options.max_file_mib << 20;
  sandbox.max_processes = options.max_processes;
  return sandbox;
}

}  // namespace pace
