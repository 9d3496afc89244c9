// pace sandbox
#include <csignal>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "sandbox/fusion/server.h"
#include "sandbox/sandbox.h"

namespace pace {
namespace {

// Waits until the program is told to end. REQUIRES: the signals are blocked in
// every thread.
void WaitForEnd(const sigset_t& signals) {
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
}

Status Serve(const SandboxArguments& arguments) {
  // Before any thread starts, so that all of them leave these signals to us.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  SandboxOptions options;
  if (arguments.unsafe) options.mode = SandboxMode::kUnsafe;
  options.python = arguments.python;
  options.max_programs = arguments.max_programs;
  options.memory_bytes = arguments.memory_mib << 20;
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));

  FusionServerOptions server_options;
  server_options.http.address = arguments.address;
  server_options.http.port = arguments.port;
  server_options.max_memory_bytes = options.memory_bytes;
  server_options.max_timeout = Seconds(arguments.max_timeout);
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server,
                        StartFusionServer(server_options, *sandbox));
  std::fprintf(stderr, "pace: sandbox: %s\n", sandbox->Description().c_str());
  const bool version_6 = arguments.address.find(':') != std::string::npos;
  std::fprintf(
      stderr, "pace: sandbox: POST /run_code at http://%s%s%s:%lld, %lld programs at once\n",
      version_6 ? "[" : "", arguments.address.c_str(), version_6 ? "]" : "",
      static_cast<long long>(server->port()), static_cast<long long>(options.max_programs));
  WaitForEnd(signals);
  return Status::Ok();
}

}  // namespace

int RunSandboxCommand(const SandboxArguments& arguments) {
  const Status status = Serve(arguments);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace pace
