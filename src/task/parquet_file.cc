#include "task/parquet_file.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <span>

#include "core/file_descriptor.h"
#include "core/line_reader.h"
#include "core/printable.h"
#include "task/line_file.h"

namespace pace {
namespace {

constexpr size_t kBlock = size_t{1} << 16;
constexpr size_t kMaxReason = 400;

// What the descriptor gives next; 0 at its end.
size_t ReadSome(int descriptor, std::span<char> room) {
  while (true) {
    const ssize_t count = read(descriptor, room.data(), room.size());
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR && errno != EAGAIN) return 0;
    pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
    poll(&polled, 1, -1);
  }
}

// The last line of what the script says of a failure, without its name.
std::string ReasonOf(int descriptor) {
  std::string text(kBlock, '\0');
  text.resize(ReadSome(descriptor, text));
  while (text.ends_with('\n')) text.pop_back();
  text = text.substr(text.rfind('\n') + 1);
  constexpr std::string_view kName = "parquet_to_jsonl.py: ";
  if (text.starts_with(kName)) text.erase(0, kName.size());
  return Printable(text.substr(0, kMaxReason));
}

// A process that is waited for at the latest when this ends.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    Wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Its exit code.
  int Wait() {
    int status = 0;
    while (pid_ > 0 && waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }

 private:
  pid_t pid_;
};

}  // namespace

Status ReadParquet(const std::string& path, const std::string& python,
                   const std::function<Status(std::string_view, int64_t)>& take) {
  if (access(path.c_str(), R_OK) != 0) return ErrnoStatus(path + ": cannot be read");
  PACE_ASSIGN_OR_RETURN(DescriptorPair rows, MakePipe());
  PACE_ASSIGN_OR_RETURN(DescriptorPair errors, MakePipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, rows.second.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.second.get(), 2);
  std::string words[] = {python, "-c", std::string(ParquetScript()), "--", path};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                       words[3].data(), words[4].data(), nullptr};
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, python.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus(Concat("task.python = ", Printable(python)), error);
  Child child(pid);
  rows.second.Close();
  errors.second.Close();
  LineBuffer lines;
  int64_t number = 0;
  while (true) {
    const size_t count = ReadSome(rows.first.get(), lines.Room(kBlock));
    if (count == 0) break;
    lines.Filled(count);
    while (const std::optional<std::string_view> line = lines.Next()) {
      PACE_RETURN_IF_ERROR(take(*line, ++number));
    }
    if (lines.pending() > kMaxDataLineBytes) {
      return InvalidArgument(path, ":", number + 1, ": a row of more than ", kMaxDataLineBytes,
                             " bytes");
    }
  }
  const std::string reason = ReasonOf(errors.first.get());
  if (child.Wait() == 0) return Status::Ok();
  return InvalidArgument(path, ": ", reason.empty() ? "the interpreter ended" : reason,
                         " (task.python = ", Printable(python), " reads Parquet files)");
}

}  // namespace pace
