#include "runtime/local_servers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/printable.h"

namespace pace {
namespace {

constexpr int64_t kMaxEarlyDeaths = 3;
constexpr size_t kMaxReadyBytes = 4096;
constexpr std::chrono::milliseconds kRestart(500);
constexpr std::chrono::seconds kGrace(5);

// Everything that the child needs between fork and exec, made beforehand: there only
// async-signal-safe calls are allowed.
struct Launch {
  std::vector<std::string> texts;
  std::vector<std::string> environment;
  std::vector<char*> arguments;
  std::vector<char*> variables;
};

Launch MakeLaunch(const std::string& program, const std::vector<std::string>& arguments,
                  const std::string& token) {
  Launch launch;
  launch.texts.push_back(program);
  launch.texts.insert(launch.texts.end(), arguments.begin(), arguments.end());
  for (char** at = environ; *at != nullptr; ++at) {
    if (!std::string_view(*at).starts_with("PACE_API_KEY=")) launch.environment.emplace_back(*at);
  }
  launch.environment.push_back("PACE_API_KEY=" + token);
  for (std::string& text : launch.texts) launch.arguments.push_back(text.data());
  for (std::string& text : launch.environment) launch.variables.push_back(text.data());
  launch.arguments.push_back(nullptr);
  launch.variables.push_back(nullptr);
  return launch;
}

bool HasEnded(pid_t pid) {
  int status = 0;
  return ::waitpid(pid, &status, WNOHANG) != 0;
}

}  // namespace

Result<LocalServers> LocalServers::Start(Options options) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) return Unavailable(options.folder, ": ", error.message());
  LocalServers servers(std::move(options));
  for (int64_t i = 0; i < servers.options_.count; ++i) {
    Server& server = servers.servers_.emplace_back();
    const std::filesystem::path folder = servers.options_.folder;
    server.ready_file = (folder / Concat("server-", i, ".url")).string();
    server.log = (folder / Concat("server-", i, ".log")).string();
    PACE_RETURN_IF_ERROR(servers.StartOne(server));
  }
  return servers;
}

LocalServers::LocalServers(LocalServers&& other) noexcept
    : options_(std::move(other.options_)), servers_(std::exchange(other.servers_, {})) {}

LocalServers::~LocalServers() {
  for (const Server& server : servers_) {
    if (server.pid > 0) ::kill(server.pid, SIGTERM);
  }
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  for (const Server& server : servers_) {
    if (server.pid <= 0) continue;
    while (!HasEnded(server.pid)) {
      if (std::chrono::steady_clock::now() > deadline) ::kill(server.pid, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::error_code ignored;
    std::filesystem::remove(server.ready_file, ignored);
  }
}

Status LocalServers::StartOne(Server& server) {
  std::error_code ignored;
  std::filesystem::remove(server.ready_file, ignored);
  std::vector<std::string> arguments = options_.arguments;
  arguments.insert(arguments.end(), {"--port", server.port, "--ready-file", server.ready_file});
  Launch launch = MakeLaunch(options_.program, arguments, options_.token);
  const FileDescriptor log(
      ::open(server.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (log.get() < 0) return ErrnoStatus(server.log);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus("a server cannot be started");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    // Ctrl-C is for the run; it ends its servers itself.
    ::setpgid(0, 0);
    ::dup2(log.get(), STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    ::execve(launch.arguments[0], launch.arguments.data(), launch.variables.data());
    ::_exit(127);
  }
  server.pid = pid;
  return Status::Ok();
}

Status LocalServers::ReadReady(Server& server) {
  if (!server.url.empty() || !std::filesystem::exists(server.ready_file)) return Status::Ok();
  PACE_ASSIGN_OR_RETURN(std::string url, ReadFile(server.ready_file, kMaxReadyBytes));
  while (!url.empty() && url.back() == '\n') url.pop_back();
  const size_t colon = url.rfind(':');
  if (colon == std::string::npos) return DataLoss(server.ready_file, ": ", Printable(url));
  server.port = url.substr(colon + 1);
  server.url = std::move(url);
  server.num_early_deaths = 0;
  return Status::Ok();
}

Status LocalServers::Watch() {
  const auto now = std::chrono::steady_clock::now();
  for (Server& server : servers_) {
    if (server.pid > 0 && HasEnded(server.pid)) {
      server.pid = -1;
      server.next_start = now + kRestart;
      if (server.url.empty() && ++server.num_early_deaths >= kMaxEarlyDeaths) {
        return Unavailable("a server of the run's own does not start: see ", server.log);
      }
      server.url.clear();
    }
    if (server.pid < 0 && now >= server.next_start) PACE_RETURN_IF_ERROR(StartOne(server));
    if (server.pid > 0) PACE_RETURN_IF_ERROR(ReadReady(server));
  }
  return Status::Ok();
}

}  // namespace pace
