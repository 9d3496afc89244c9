#include "config/tools_options.h"

#include <array>
#include <string_view>

#include "config/reward_options.h"
#include "core/printable.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 2> kSandboxNames = {"isolated", "unsafe"};
constexpr double kMaxMib = 1 << 20;

}  // namespace

std::vector<Field> ToolsOptions::Fields() {
  return {
      Field::Text("use", use,
                  "none; code_interpreter = responses may have Python programs run and read what "
                  "they print; python:FILE:CLASS = an environment of yours (docs/tools.md). Needs "
                  "a chat template."),
      Field::Int("max_assistant_turns", max_assistant_turns,
                 "Turns of a response by the model; the one that reaches the bound is the last.")
          .AtLeast(1)
          .AtMost(1000),
      Field::Int("max_tool_turns", max_tool_turns, "Tool replies in a response.")
          .AtLeast(1)
          .AtMost(1000),
      Field::Int("max_reply", max_reply,
                 "Characters of a tool's reply; of a longer one both ends stay.")
          .AtLeast(2)
          .AtMost(1e6),
      Field::Bool("reuse", reuse,
                  "Whether a program that was run before is not run again: for programs that "
                  "always print the same."),
      Field::Enum("sandbox", sandbox, kSandboxNames,
                  "isolated = namespaces, seccomp and limits, or a refusal; unsafe = limits "
                  "alone, for programs you trust: they see the caller's files and network."),
      Field::Text("url", url,
                  "A SandboxFusion server, http://HOST:PORT (IPv6 in brackets), that runs programs "
                  "instead of this machine; empty = this machine."),
      Field::Text("python", python,
                  "The interpreter of programs; a bare name is looked up in PATH."),
      Field::TextList("warm_modules", warm_modules,
                      "Modules that warm interpreters have imported; missing ones are left out."),
      Field::Int("max_programs", max_programs,
                 "Programs at once, over all rollouts of a run; others wait. More: faster with "
                 "many cores, more memory.")
          .AtLeast(1)
          .AtMost(4096),
      Field::Real("timeout", timeout, "Seconds of one program, or of one step of an environment.")
          .Above(0)
          .AtMost(3600),
      Field::Int(
          "memory_mib", memory_mib,
          "MiB of one program, its processes together; of address space of one process that holds "
          "environments.")
          .AtLeast(64)
          .AtMost(kMaxMib),
      Field::Int("tmp_mib", tmp_mib, "MiB of a program's private /tmp.").AtLeast(1).AtMost(kMaxMib),
      Field::Int("max_file_mib", max_file_mib, "MiB of one file.").AtLeast(1).AtMost(kMaxMib),
      Field::Int("max_processes", max_processes, "Processes and threads of one program.")
          .AtLeast(1)
          .AtMost(4096),
      Field::Int("num_workers", num_workers, "Processes that hold environments in Python.")
          .AtLeast(1)
          .AtMost(1024),
      Field::Real("start_timeout", start_timeout,
                  "Seconds until a process has imported the file of the environment.")
          .Above(0)
          .AtMost(86400),
  };
}

ToolUse ToolsOptions::kind() const {
  if (use == "none") return ToolUse::kNone;
  return use == "code_interpreter" ? ToolUse::kCodeInterpreter : ToolUse::kEnvironment;
}

Status ToolsOptions::Validate() const {
  if (kind() != ToolUse::kEnvironment) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(const auto named, PythonNameOf("tools.use", use));
  if (named.has_value()) return Status::Ok();
  return InvalidArgument("tools.use = ", Printable(use),
                         ": must be none, code_interpreter or python:FILE:CLASS");
}

}  // namespace pace
