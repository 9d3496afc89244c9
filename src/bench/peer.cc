#include "bench/peer.h"

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
#include <limits>
#include <utility>

#include "core/file_descriptor.h"
#include "core/json_scanner.h"

#ifndef PACE_DEFAULT_PYTHON
#define PACE_DEFAULT_PYTHON "python3"
#endif

namespace pace {
namespace {

// Importing torch on a busy machine takes a while, and so may a slow batch.
constexpr Seconds kTimeout(600);
// The last lines of what a failed script said.
constexpr off_t kErrorBytes = 400;

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

void ScanNumber(JsonScanner& scan, double& out) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  scan.Real(-kLargest, kLargest, "", out);
}

}  // namespace

class Peer::Process {
 public:
  // Standard input is `input_path`, or, where that is empty, what Send writes.
  static Result<std::unique_ptr<Process>> Start(const std::vector<std::string>& words,
                                                const std::string& input_path) {
    auto process = std::make_unique<Process>();
    process->program_ = words.front();
    // A socket, so that a peer that is gone is an error and not a signal.
    FileDescriptor input;
    if (input_path.empty()) {
      PACE_ASSIGN_OR_RETURN(DescriptorPair sockets, MakeSocketPair(SOCK_STREAM));
      process->input_ = std::move(sockets.first);
      input = std::move(sockets.second);
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
    process->output_ = FileDescriptor(ends[0]);
    const FileDescriptor output(ends[1]);
    process->errors_ = FileDescriptor(memfd_create("errors", MFD_CLOEXEC));

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (input_path.empty()) {
      posix_spawn_file_actions_adddup2(&actions, input.get(), 0);
    } else {
      posix_spawn_file_actions_addopen(&actions, 0, input_path.c_str(), O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions, output.get(), 1);
    posix_spawn_file_actions_adddup2(&actions, process->errors_.get(), 2);
    std::vector<std::string> copies = words;
    std::vector<char*> argv;
    for (std::string& word : copies) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error =
        posix_spawnp(&process->pid_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return process;
    process->pid_ = 0;
    return Unavailable(words.front(), ": ", std::strerror(error), " (it must be on the path",
                       input_path.empty() ? "" : Concat(", and ", input_path, " readable"), ")");
  }

  ~Process() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  Status Send(std::string_view line) {
    std::string text(line);
    text += '\n';
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count =
          send(input_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno != EINTR) return Ended();
      if (count > 0) sent += static_cast<size_t>(count);
    }
    return Status::Ok();
  }

  // The next line, without the newline.
  Result<std::string> ReadLine(Seconds timeout) {
    while (true) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      PACE_ASSIGN_OR_RETURN(const bool more, Fill(timeout));
      if (more) continue;
      PACE_RETURN_IF_ERROR(Ended());
      return Unavailable(program_, ": the script ended without an answer");
    }
  }

  // Everything until the program ends, which must be with exit code 0.
  Result<std::string> ReadToEnd(Seconds timeout) {
    const WallClock clock;
    while (true) {
      const Result<bool> more = Fill(timeout - clock.Now());
      if (!more.ok()) return Unavailable(program_, ": did not end within ", timeout.count(), " s");
      if (!*more) break;
    }
    PACE_RETURN_IF_ERROR(Ended());
    return std::move(buffer_);
  }

 private:
  // More output into buffer_; false at its end.
  Result<bool> Fill(Seconds timeout) {
    const WallClock clock;
    std::array<char, 1 << 16> bytes{};
    while (true) {
      const double left = (timeout - clock.Now()).count();
      if (left <= 0) return Unavailable(program_, ": no answer within ", timeout.count(), " s");
      pollfd waiting{.fd = output_.get(), .events = POLLIN, .revents = 0};
      const int ready = poll(&waiting, 1, static_cast<int>(std::min(left, 1e3) * 1000) + 1);
      if (ready < 0 && errno != EINTR) return ErrnoStatus("poll");
      if (ready <= 0) continue;
      const ssize_t count = read(output_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) return ErrnoStatus("read");
      if (count < 0) continue;
      buffer_.append(bytes.data(), static_cast<size_t>(count));
      return count > 0;
    }
  }

  // Waits for the child; an error unless its exit code is 0.
  Status Ended() {
    int exit = 0;
    while (waitpid(pid_, &exit, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    if (WIFEXITED(exit) && WEXITSTATUS(exit) == 0) return Status::Ok();
    return Unavailable(program_, ": the script failed: ", LastErrors(errors_.get()));
  }

  std::string program_;
  pid_t pid_ = 0;
  FileDescriptor input_;   // the writing end
  FileDescriptor output_;  // the reading end
  FileDescriptor errors_;
  std::string buffer_;
};

std::string PeerPython() {
  const char* chosen = std::getenv("PACE_PYTHON");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return access(PACE_DEFAULT_PYTHON, X_OK) == 0 ? PACE_DEFAULT_PYTHON : "python3";
}

Result<std::string> RunProgram(const std::vector<std::string>& words, const std::string& input_path,
                               Seconds timeout) {
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<Peer::Process> process,
                        Peer::Process::Start(words, input_path));
  return process->ReadToEnd(timeout);
}

Result<PeerAnswer> PeerAnswer::Parse(const std::string& script, std::string_view json,
                                     std::initializer_list<std::string_view> required) {
  PeerAnswer answer;
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string key(scan.key());
    if (scan.NextKind() == JsonScanner::Kind::kText) {
      scan.Text(answer.texts[key]);
    } else if (scan.NextKind() != JsonScanner::Kind::kArray) {
      ScanNumber(scan, answer.numbers[key]);
    } else {
      scan.EnterArray();
      while (scan.NextItem()) {
        const bool is_row = scan.NextKind() == JsonScanner::Kind::kArray;
        if (is_row || answer.rows.empty()) answer.rows.emplace_back();
        std::vector<double>& row = answer.rows.back();
        if (!is_row) {
          ScanNumber(scan, row.emplace_back());
          continue;
        }
        scan.EnterArray();
        while (scan.NextItem()) ScanNumber(scan, row.emplace_back());
      }
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status().At(script);
  for (const std::string_view key : required) {
    if (!answer.numbers.contains(key)) {
      return InvalidArgument(script, ": an answer without ", key);
    }
  }
  return answer;
}

Peer::Peer(std::string_view script, std::unique_ptr<Process> process)
    : script_(script), process_(std::move(process)) {}
Peer::Peer(Peer&&) noexcept = default;
Peer& Peer::operator=(Peer&&) noexcept = default;
Peer::~Peer() = default;

Result<Peer> Peer::Start(std::string_view script, const std::vector<std::string>& arguments,
                         const std::string& python) {
  std::vector<std::string> words = {python, "-I", "-c", PeerScript(script)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<Process> process, Process::Start(words, ""));
  return Peer(script, std::move(process));
}

Result<PeerAnswer> Peer::Ask(std::string_view request,
                             std::initializer_list<std::string_view> required) {
  PACE_RETURN_IF_ERROR(process_->Send(request));
  PACE_ASSIGN_OR_RETURN(const std::string line, process_->ReadLine(kTimeout));
  PACE_ASSIGN_OR_RETURN(PeerAnswer answer, PeerAnswer::Parse(script_, line, required));
  const auto version = answer.texts.find("version");
  if (version != answer.texts.end()) version_ = version->second;
  return answer;
}

std::string DescriptionOf(const Result<Peer>& peer) {
  return peer.ok() ? peer->version() : peer.status().message();
}

}  // namespace pace
