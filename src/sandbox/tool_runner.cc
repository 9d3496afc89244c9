#include "sandbox/tool_runner.h"

#include <utility>

#include "sandbox/fusion/client.h"
#include "sandbox/sandbox.h"

namespace pace {

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

Result<std::unique_ptr<ProgramRunner>> StartToolRunner(const ToolsOptions& options) {
  if (options.url.empty()) {
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<Sandbox> sandbox,
                          Sandbox::Start(SandboxOptionsFrom(options)));
    return std::unique_ptr<ProgramRunner>(std::move(sandbox));
  }
  Result<std::unique_ptr<FusionClient>> client =
      FusionClient::Make({.url = options.url,
                          .max_programs = options.max_programs,
                          .timeout = Seconds(options.timeout)});
  if (!client.ok()) return client.status().At("tools.url");
  PACE_RETURN_IF_ERROR((*client)->Ping().At("tools.url"));
  return std::unique_ptr<ProgramRunner>(std::move(client).value());
}

}  // namespace pace
