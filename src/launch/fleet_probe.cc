#include "launch/fleet_probe.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "core/atomic_file.h"
#include "core/file.h"
#include "core/file_descriptor.h"

namespace pace {
namespace {

double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Result<ServerAnswer> CallOnce(HttpCalls& calls, const HttpCall& http, Seconds deadline) {
  calls.Add(1, http, deadline);
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(deadline) +
                   std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    std::vector<HttpCalls::Done> done = calls.Poll(Seconds(0.2));
    if (!done.empty()) return std::move(done.front().answer);
  }
  calls.Remove(1);
  return Unavailable(http.target, ": no answer in ", deadline.count(), " s");
}

}  // namespace

EngineFacts ProbeEngine(const ServerAddress& server, const Dialect& dialect, Seconds deadline) {
  EngineFacts engine;
  engine.url = server.url;
  engine.status = CheckServerUrl(server.url);
  if (!engine.status.ok()) return engine;
  HttpCalls calls(server);
  const std::vector<HttpCall> join = dialect.Join();
  for (size_t i = 0; i < join.size(); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const Result<ServerAnswer> answer = CallOnce(calls, join[i], deadline);
    const Seconds took = std::chrono::steady_clock::now() - begin;
    if (!answer.ok()) {
      engine.status = answer.status();
      return engine;
    }
    if (i == 0 || took < engine.latency) {
      engine.latency = took;
      if (answer->unix_seconds.has_value()) {
        // Within the second that it names.
        const double now = UnixSeconds() - 0.5 - took.count() / 2;
        engine.clock_offset = static_cast<double>(*answer->unix_seconds) - now;
      }
    }
    engine.status = dialect.ReadJoin(i, *answer, engine.facts);
    if (!engine.status.ok()) return engine;
  }
  if (!server.token.empty()) {
    ServerAddress anyone = server;
    anyone.token.clear();
    HttpCalls open(anyone);
    const Result<ServerAnswer> answer = CallOnce(open, dialect.Label(), deadline);
    engine.answers_without_token = answer.ok() && answer->status == 200;
  }
  return engine;
}

FolderFacts ProbeFolder(const std::string& path, int64_t needed_bytes) {
  FolderFacts folder;
  folder.path = path;
  folder.needed_bytes = needed_bytes;
  folder.status = CreateFolders(path);
  if (!folder.status.ok()) return folder;
  const std::string probe = Concat(path, "/.pace-doctor-", ::getpid());
  folder.status = WriteFileAtomically(probe, "pace\n");
  if (!folder.status.ok()) return folder;
  struct ::stat file{};
  if (::stat(probe.c_str(), &file) == 0) {
    folder.clock_offset = static_cast<double>(file.st_mtim.tv_sec) +
                          1e-9 * static_cast<double>(file.st_mtim.tv_nsec) - UnixSeconds();
  }
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  struct ::statvfs disk{};
  if (::statvfs(path.c_str(), &disk) != 0) {
    folder.status = ErrnoStatus(path);
    return folder;
  }
  folder.free_bytes = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
  return folder;
}

Result<std::string> FindNccl() {
  const char* const named = std::getenv("VLLM_NCCL_SO_PATH");
  const std::string library = named == nullptr ? "libnccl.so.2" : named;
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return NotFound(library,
                    ": cannot be loaded (it comes with the CUDA build of PyTorch; "
                    "LD_LIBRARY_PATH or VLLM_NCCL_SO_PATH names its place)");
  }
  using GetVersion = int (*)(int*);
  const auto version = reinterpret_cast<GetVersion>(::dlsym(handle, "ncclGetVersion"));
  int number = 0;
  if (version == nullptr || version(&number) != 0) {
    return DataLoss(library, ": has no ncclGetVersion that answers");
  }
  return Concat(library, " ", number / 10000, ".", number / 100 % 100, ".", number % 100);
}

}  // namespace pace
