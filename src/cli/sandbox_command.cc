// pace sandbox
#include <csignal>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "sandbox/fusion/server.h"
#include "sandbox/sandbox.h"

namespace pace {
namespace {

struct SandboxArguments {
  std::string address = "127.0.0.1";
  int64_t port = 8080;
  int64_t max_programs = 16;
  int64_t memory_mib = 1024;
  double max_timeout = 300;  // seconds
  std::string python = "python3";
  bool unsafe = false;
};

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

void AddSandbox(const CommandLine& line) {
  const CommandLine group =
      line.AddGroup("sandbox", "Run untrusted Python programs, isolated",
                    "pace sandbox serve --port 8080\n"
                    "  curl -d '{\"code\": \"print(1)\", \"language\": \"python\"}' "
                    "http://127.0.0.1:8080/run_code");
  group.Add<SandboxArguments>(
      "serve", "The SandboxFusion interface over HTTP",
      "pace sandbox serve --address 0.0.0.0 --port 8080",
      [](CLI::App& app, SandboxArguments& arguments) {
        app.add_option("--address", arguments.address, "IP address to listen on")
            ->capture_default_str();
        app.add_option("--port", arguments.port, "0 = any free port")
            ->check(CLI::Range(0, 65535))
            ->capture_default_str();
        app.add_option("--max-programs", arguments.max_programs, "Programs at once; more wait")
            ->check(CLI::Range(1, 4096))
            ->capture_default_str();
        app.add_option("--memory-mib", arguments.memory_mib, "Limit of one program")
            ->check(CLI::Range(64, 1 << 20))
            ->capture_default_str();
        app.add_option("--max-timeout", arguments.max_timeout, "Seconds: limit of one program")
            ->check(CLI::Range(0.01, 3600.0))
            ->capture_default_str();
        app.add_option("--python", arguments.python, "The interpreter of programs")
            ->capture_default_str();
        app.add_flag("--unsafe", arguments.unsafe,
                     "Without isolation: for trusted programs where isolation is unavailable");
      },
      Serve);
}

}  // namespace pace
