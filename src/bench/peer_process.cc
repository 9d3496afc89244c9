#include "bench/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#ifndef PACE_DEFAULT_PYTHON
#define PACE_DEFAULT_PYTHON "python3"
#endif

namespace pace {
namespace {

// The last lines of what a failed script said.
constexpr off_t kErrorBytes = 400;

void CloseEnd(int& end) {
  if (end >= 0) close(end);
  end = -1;
}

std::string LastErrors(int errors) {
  const off_t size = lseek(errors, 0, SEEK_END);
  if (size <= 0) return "it said nothing";
  std::array<char, kErrorBytes> tail{};
  const ssize_t count =
      pread(errors, tail.data(), tail.size(), std::max<off_t>(0, size - kErrorBytes));
  std::string text(tail.data(), static_cast<size_t>(std::max<ssize_t>(0, count)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

std::string PeerPython() {
  const char* chosen = std::getenv("PACE_PYTHON");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return access(PACE_DEFAULT_PYTHON, X_OK) == 0 ? PACE_DEFAULT_PYTHON : "python3";
}

Result<PeerProcess> PeerProcess::Start(const std::string& python, std::string_view script,
                                       const std::vector<std::string>& arguments,
                                       const std::string& input_path) {
  // A socket, so that a peer that is gone is an error and not a signal.
  std::array<int, 2> in{-1, -1};
  std::array<int, 2> out{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) != 0 ||
      pipe2(out.data(), O_CLOEXEC) != 0) {
    return Unavailable("pipe: ", std::strerror(errno));
  }
  PeerProcess peer;
  peer.python_ = python;
  peer.input_ = in[0];
  peer.output_ = out[0];
  peer.errors_ = memfd_create("errors", MFD_CLOEXEC);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input_path.empty()) {
    posix_spawn_file_actions_adddup2(&actions, in[1], 0);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, input_path.c_str(), O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, peer.errors_, 2);
  std::vector<std::string> words = {python, "-I", "-c", std::string(script)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int error =
      posix_spawnp(&peer.pid_, python.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  CloseEnd(in[1]);
  CloseEnd(out[1]);
  if (!input_path.empty()) CloseEnd(peer.input_);
  if (error != 0) {
    peer.pid_ = 0;
    return Unavailable(
        python, ": ", std::strerror(error), " (it must be on the path",
        input_path.empty() ? std::string() : Concat(", and ", input_path, " readable"), ")");
  }
  return peer;
}

PeerProcess::PeerProcess(PeerProcess&& other) noexcept
    : python_(std::move(other.python_)),
      pid_(std::exchange(other.pid_, 0)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      errors_(std::exchange(other.errors_, -1)),
      buffer_(std::move(other.buffer_)) {}

PeerProcess::~PeerProcess() {
  if (pid_ != 0) {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  CloseEnd(input_);
  CloseEnd(output_);
  CloseEnd(errors_);
}

Status PeerProcess::Send(std::string_view line) {
  std::string text(line);
  text += '\n';
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = send(input_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) return Ended();
    if (count > 0) sent += static_cast<size_t>(count);
  }
  return Status::Ok();
}

Result<bool> PeerProcess::Fill(Seconds timeout) {
  const WallClock clock;
  std::array<char, 1 << 16> bytes{};
  while (true) {
    const double left = (timeout - clock.Now()).count();
    if (left <= 0) return Unavailable(python_, ": no answer within ", timeout.count(), " s");
    pollfd waiting{.fd = output_, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min(left, 1e3) * 1000) + 1);
    if (ready < 0 && errno != EINTR) return Unavailable("poll: ", std::strerror(errno));
    if (ready <= 0) continue;
    const ssize_t count = read(output_, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return Unavailable("read: ", std::strerror(errno));
    if (count < 0) continue;
    buffer_.append(bytes.data(), static_cast<size_t>(count));
    return count > 0;
  }
}

// Reaps the child; an error unless it ended well.
Status PeerProcess::Ended() {
  int exit = 0;
  while (waitpid(pid_, &exit, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  if (WIFEXITED(exit) && WEXITSTATUS(exit) == 0) return Status::Ok();
  return Unavailable(python_, ": the script failed: ", LastErrors(errors_));
}

Result<std::string> PeerProcess::ReadLine(Seconds timeout) {
  while (true) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    PACE_ASSIGN_OR_RETURN(const bool more, Fill(timeout));
    if (!more) {
      PACE_RETURN_IF_ERROR(Ended());
      return Unavailable(python_, ": the script ended without an answer");
    }
  }
}

Result<std::string> PeerProcess::ReadToEnd(Seconds timeout) {
  const WallClock clock;
  while (true) {
    const Result<bool> more = Fill(timeout - clock.Now());
    if (!more.ok()) return Unavailable(python_, ": did not end within ", timeout.count(), " s");
    if (!*more) break;
  }
  PACE_RETURN_IF_ERROR(Ended());
  return std::exchange(buffer_, {});
}

}  // namespace pace
