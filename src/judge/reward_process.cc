#include "judge/reward_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "judge/reward_request.h"

namespace pace {
namespace {

constexpr size_t kHeaderBytes = 4;
constexpr int kSocketNumber = 3;  // of the socket in the process

// What the new process needs, made before it exists: between fork and exec nothing may allocate.
struct Launch {
  std::vector<std::string> words;
  std::vector<char*> argv;
  std::string uid_map, gid_map;
  std::string path;  // of the interpreter
  uint64_t memory_bytes = 0;
  int socket = -1;
  pid_t parent = 0;
};

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string candidate = Concat(rest.substr(0, colon), "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return name;
}

bool IsReadable(int descriptor) {
  pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
  return descriptor >= 0 && poll(&polled, 1, 0) > 0;
}

bool WriteWhole(const char* path, std::string_view text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t written = write(file, text.data(), text.size());
  close(file);
  return written == static_cast<ssize_t>(text.size());
}

// In the new process. Only calls that are safe after fork in a program with threads.
[[noreturn]] void Become(const Launch& launch, bool user_namespace, bool pid_namespace) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The caller may have ended before that; across PID namespaces its number reads 0.
  if (!pid_namespace && getppid() != launch.parent) _exit(127);
  if (user_namespace) {
    WriteWhole("/proc/self/setgroups", "deny");
    if (!WriteWhole("/proc/self/uid_map", launch.uid_map)) _exit(126);
    if (!WriteWhole("/proc/self/gid_map", launch.gid_map)) _exit(126);
  }
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
  if (launch.memory_bytes > 0) {
    const rlimit limit{launch.memory_bytes, launch.memory_bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) _exit(127);
  // The socket's number may be one of those that are replaced.
  const int socket = fcntl(launch.socket, F_DUPFD, kSocketNumber + 1);
  for (const int number : {0, 1, 2}) dup2(null, number);
  dup2(socket, kSocketNumber);
  syscall(SYS_close_range, kSocketNumber + 1, ~0U, 0);
  execv(launch.path.c_str(), launch.argv.data());
  _exit(127);
}

pid_t Clone(const Launch& launch, unsigned long namespaces) {
  const long pid = syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) {
    Become(launch, (namespaces & CLONE_NEWUSER) != 0, (namespaces & CLONE_NEWPID) != 0);
  }
  return static_cast<pid_t>(pid);
}

// With the most isolation that the system allows.
pid_t Spawn(const Launch& launch) {
  const pid_t isolated =
      Clone(launch, geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWPID | CLONE_NEWUSER);
  return isolated > 0 ? isolated : Clone(launch, 0);
}

}  // namespace

Result<RewardProcess> RewardProcess::Start(const RewardCommand& command) {
  PACE_ASSIGN_OR_RETURN(DescriptorPair sockets, MakeSocketPair(SOCK_STREAM));
  Launch launch;
  launch.path = FindProgram(command.python);
  if (access(launch.path.c_str(), X_OK) != 0) {
    return ErrnoStatus(Concat(command.python_key, " = ", command.python));
  }
  launch.words = {
      command.python, "-c",         std::string(command.script),  std::to_string(kSocketNumber),
      command.file,   command.name, std::to_string(command.batch)};
  for (std::string& word : launch.words) launch.argv.push_back(word.data());
  launch.argv.push_back(nullptr);
  launch.uid_map = Concat(int64_t{geteuid()}, " ", int64_t{geteuid()}, " 1");
  launch.gid_map = Concat(int64_t{getegid()}, " ", int64_t{getegid()}, " 1");
  launch.memory_bytes = static_cast<uint64_t>(command.memory_mib) << 20;
  launch.socket = sockets.second.get();
  launch.parent = getpid();
  const pid_t pid = Spawn(launch);
  if (pid < 0) return ErrnoStatus(Concat(command.python_key, " = ", command.python));
  const int flags = fcntl(sockets.first.get(), F_GETFL);
  if (fcntl(sockets.first.get(), F_SETFL, flags | O_NONBLOCK) < 0) return ErrnoStatus("fcntl");
  const long exited = syscall(SYS_pidfd_open, pid, 0);
  return RewardProcess(pid, std::move(sockets.first), FileDescriptor(static_cast<int>(exited)));
}

RewardProcess::RewardProcess(pid_t pid, FileDescriptor socket, FileDescriptor exited)
    : pid_(pid), socket_(std::move(socket)), exited_(std::move(exited)) {}

RewardProcess::RewardProcess(RewardProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::move(other.socket_)),
      exited_(std::move(other.exited_)),
      unsent_(std::move(other.unsent_)),
      received_(std::move(other.received_)) {}

RewardProcess::~RewardProcess() {
  if (pid_ < 0) return;
  // The session first: without a PID namespace its other members would live on.
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status RewardProcess::Send(std::string_view message) {
  if (message.size() > UINT32_MAX) return InvalidArgument("a batch of more than 4 GiB");
  const auto size = static_cast<uint32_t>(message.size());
  for (size_t i = 0; i < kHeaderBytes; ++i) {
    unsent_ += static_cast<char>((size >> (8 * i)) & 0xff);
  }
  unsent_ += message;
  return Flush().status();
}

Result<bool> RewardProcess::Flush() {
  size_t sent = 0;
  while (sent < unsent_.size()) {
    const ssize_t count =
        send(socket_.get(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      return Unavailable("its process ended");
    }
  }
  unsent_.erase(0, sent);
  return unsent_.empty();
}

Result<std::optional<std::string>> RewardProcess::Receive() {
  char buffer[1 << 16];
  while (true) {
    if (received_.size() >= kHeaderBytes) {
      uint32_t size = 0;
      for (size_t i = 0; i < kHeaderBytes; ++i) {
        size |= static_cast<uint32_t>(static_cast<unsigned char>(received_[i])) << (8 * i);
      }
      if (size > kMaxRewardBytes) {
        return InvalidArgument("said ", size, " bytes at once; at most ", kMaxRewardBytes);
      }
      if (received_.size() >= kHeaderBytes + size) {
        std::string message = received_.substr(kHeaderBytes, size);
        received_.erase(0, kHeaderBytes + size);
        return std::optional(std::move(message));
      }
    }
    const ssize_t count = recv(socket_.get(), buffer, sizeof(buffer), 0);
    if (count > 0) {
      received_.append(buffer, static_cast<size_t>(count));
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return std::optional<std::string>();
    } else if (count == 0 || errno != EINTR) {
      return Unavailable("its process ended");
    }
  }
}

Result<std::optional<std::string>> RewardProcess::Await(Seconds timeout, int cancel) {
  const WallClock clock;
  const Seconds deadline = clock.Now() + timeout;
  while (true) {
    PACE_RETURN_IF_ERROR(Flush().status());
    PACE_ASSIGN_OR_RETURN(std::optional<std::string> message, Receive());
    if (message.has_value()) return message;
    // A process may end while another that it started holds the socket open.
    if (IsReadable(exit_descriptor())) return Unavailable("its process ended");
    const Seconds left = deadline - clock.Now();
    if (left <= Seconds(0)) return std::optional<std::string>();
    if (IsReadable(cancel)) return Unavailable("the run has ended");
    const auto events = static_cast<int16_t>(has_output() ? POLLIN | POLLOUT : POLLIN);
    pollfd polled[] = {{.fd = socket(), .events = events, .revents = 0},
                       {.fd = exit_descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = cancel, .events = POLLIN, .revents = 0}};
    const auto wait = std::min<double>(left.count(), 1.0) * 1000;
    poll(polled, 3, static_cast<int>(wait) + 1);
  }
}

}  // namespace pace
