#include "sandbox/python_installation.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "core/file_descriptor.h"
#include "core/json_scanner.h"
#include "core/printable.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace pace {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr size_t kMaxAnswer = size_t{1} << 16;

constexpr const char* kQuestion = R"(
import json, os, site, sys
folders = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
folders += site.getsitepackages() if hasattr(site, "getsitepackages") else []
folders += [os.path.dirname(os.path.realpath(sys.executable))]
folders = [folder for folder in folders if os.path.isdir(folder)]
folders += [os.path.realpath(folder) for folder in folders]
print(json.dumps({"executable": sys.executable, "folders": folders,
                  "version": list(sys.version_info[:2])}))
)";

bool IsInside(std::string_view path, std::string_view folder) {
  return path == folder || (path.size() > folder.size() && path.starts_with(folder) &&
                            (folder.ends_with('/') || path[folder.size()] == '/'));
}

// Everything up to the end of the stream, or what came within kPatience.
std::string ReadAll(int descriptor) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  char buffer[4096];
  while (text.size() < kMaxAnswer) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{descriptor, POLLIN, 0};
    if (left.count() <= 0) break;
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0 && errno != EINTR) break;
    const ssize_t count = ::read(descriptor, buffer, sizeof(buffer));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

Result<std::string> Ask(const std::string& python) {
  PACE_ASSIGN_OR_RETURN(DescriptorPair pipe, MakePipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe.second.get(), 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::string words[] = {python, "-s", "-B", "-c", kQuestion};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), words[4].data(), nullptr};
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, python.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus(Concat("tools.python = ", Printable(python)), error);
  pipe.second.Close();
  std::string answer = ReadAll(pipe.first.get());
  ::kill(child, SIGKILL);  // it has answered, or never will
  int ignored = 0;
  while (::waitpid(child, &ignored, 0) < 0 && errno == EINTR) {
  }
  return answer;
}

void ReadFolders(JsonScanner& scan, std::vector<std::string>& folders) {
  scan.EnterArray();
  while (scan.NextItem()) scan.Text(folders.emplace_back());
}

void ReadVersion(JsonScanner& scan) {
  int64_t major = 0;
  int64_t minor = 0;
  int64_t count = 0;
  scan.EnterArray();
  while (scan.NextItem()) scan.Integer(0, 999, "", count++ == 0 ? major : minor);
  if (scan.ok() && (major < 3 || (major == 3 && minor < 9))) {
    scan.Fail("must be 3.9 or later");
  }
}

// Sorted, each once, none inside another or inside /usr.
std::vector<std::string> Outermost(std::vector<std::string> folders) {
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> kept;
  for (std::string& folder : folders) {
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (IsInside(folder, "/usr")) continue;
    const bool covered = std::any_of(
        kept.begin(), kept.end(), [&folder](const auto& outer) { return IsInside(folder, outer); });
    if (!covered) kept.push_back(std::move(folder));
  }
  return kept;
}

}  // namespace

Result<PythonInstallation> ReadPythonInstallation(std::string_view answer, std::string_view home) {
  PythonInstallation python;
  JsonScanner scan(answer);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "executable") {
      scan.Text(python.executable);
    } else if (scan.key() == "folders") {
      ReadFolders(scan, python.folders);
    } else if (scan.key() == "version") {
      ReadVersion(scan);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!python.executable.starts_with('/')) return InvalidArgument("it does not know its own path");
  for (const std::string& folder : python.folders) {
    if (!folder.starts_with('/')) return InvalidArgument("folder '", folder, "' is not absolute");
    if (folder == "/" || (!home.empty() && IsInside(home, folder))) {
      return InvalidArgument("it is installed in '", Printable(folder),
                             "', which would show the caller's files to programs");
    }
  }
  for (const std::string& folder : python.folders) {
    for (const char* covered : {"/tmp", "/proc", "/dev", "/etc"}) {
      if (!IsInside(folder, covered)) continue;
      return InvalidArgument("it is installed in '", Printable(folder), "', and programs have a ",
                             covered, " of their own");
    }
  }
  python.folders = Outermost(std::move(python.folders));
  return python;
}

Result<PythonInstallation> FindPython(const std::string& python) {
  PACE_ASSIGN_OR_RETURN(const std::string answer, Ask(python));
  if (answer.empty()) {
    return Unavailable("tools.python = ", Printable(python),
                       ": does not start (is it a Python 3?)");
  }
  const char* home = std::getenv("HOME");
  Result<PythonInstallation> read = ReadPythonInstallation(answer, home == nullptr ? "" : home);
  if (!read.ok()) return read.status().At(Concat("tools.python = ", Printable(python)));
  return read;
}

}  // namespace pace
