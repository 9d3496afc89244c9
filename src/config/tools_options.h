// Settings of the programs that responses may have run.
#ifndef PACE_CONFIG_TOOLS_OPTIONS_H_
#define PACE_CONFIG_TOOLS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "core/status.h"

namespace pace {

enum class ToolUse { kNone, kCodeInterpreter };
enum class SandboxKind { kIsolated, kUnsafe };

struct ToolsOptions {
  // code_interpreter: responses may write Python programs, in Hermes calls, and read
  // what they print.
  ToolUse use = ToolUse::kNone;
  // Of one response. The assistant turn that reaches its bound is the last.
  int64_t max_assistant_turns = 8;
  int64_t max_tool_turns = 8;
  // Characters of a reply; of a longer one the first and last halves stay.
  int64_t max_reply = 256;
  // A program that was run before is not run again: for programs that always print
  // the same.
  bool reuse = false;

  // isolated: namespaces, seccomp and limits, or a refusal. unsafe: limits alone;
  // programs see the caller's files and network.
  SandboxKind sandbox = SandboxKind::kIsolated;
  // A SandboxFusion server that runs programs instead of this machine.
  std::string url;

  // The interpreter; a bare name is looked up in PATH.
  std::string python = "python3";
  // Modules that warm interpreters have imported already.
  std::vector<std::string> warm_modules = {"sympy", "numpy"};

  // Over all rollouts of a run. More: faster with many cores, more memory.
  int64_t max_programs = 16;
  double timeout = 30;  // seconds
  int64_t memory_mib = 1024;
  int64_t tmp_mib = 128;
  int64_t max_file_mib = 64;
  int64_t max_processes = 64;

  std::vector<Field> Fields();
};

}  // namespace pace

#endif  // PACE_CONFIG_TOOLS_OPTIONS_H_
