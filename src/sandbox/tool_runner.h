// The program runner of the settings: a sandbox on this machine, or a remote server.
#ifndef PACE_SANDBOX_TOOL_RUNNER_H_
#define PACE_SANDBOX_TOOL_RUNNER_H_

#include <memory>

#include "config/tools_options.h"
#include "core/status.h"
#include "sandbox/program.h"
#include "sandbox/sandbox_options.h"

namespace pace {

SandboxOptions SandboxOptionsFrom(const ToolsOptions& options);

// Returns when it is ready: isolation was tested, or the server has answered.
Result<std::unique_ptr<ProgramRunner>> StartToolRunner(const ToolsOptions& options);

}  // namespace pace

#endif  // PACE_SANDBOX_TOOL_RUNNER_H_
