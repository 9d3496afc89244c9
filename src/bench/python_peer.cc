#include "bench/python_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include "core/json_scanner.h"

namespace pace {
namespace {

constexpr const char* kPython = "python3";
// For a start-up on a busy machine, on top of the work asked for.
constexpr double kPeerGraceSeconds = 60;

struct Child {
  pid_t pid = 0;
  int output = 0;  // the reading end
};

Result<Child> Spawn(const std::vector<std::string>& words, const std::string& input_path) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Unavailable("pipe: ", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input_path.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);

  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  Child child{.pid = 0, .output = ends[0]};
  const int error = posix_spawnp(&child.pid, kPython, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return Unavailable(kPython, ": ", std::strerror(error), " (it must be on the path, and ",
                       input_path, " readable)");
  }
  return child;
}

// All that comes before the end, or nothing when the time is over.
std::optional<std::string> ReadAll(int output, Seconds timeout) {
  const WallClock clock;
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (true) {
    const double left = (timeout - clock.Now()).count();
    if (left <= 0) return std::nullopt;
    pollfd waiting{.fd = output, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min(left, 1e3) * 1000) + 1);
    if (ready < 0 && errno != EINTR) return std::nullopt;
    if (ready <= 0) continue;
    const ssize_t count = read(output, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) return std::nullopt;
  }
}

}  // namespace

Result<std::string> RunNaiveController(const std::vector<std::string>& arguments,
                                       const std::string& input_path, Seconds timeout) {
  std::vector<std::string> words = {kPython, "-I", "-c", std::string(NaiveControllerSource())};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const Result<Child> child = Spawn(words, input_path);
  if (!child.ok()) return child.status();
  std::optional<std::string> text = ReadAll(child->output, timeout);
  close(child->output);
  if (!text.has_value()) kill(child->pid, SIGKILL);
  int exit = 0;
  while (waitpid(child->pid, &exit, 0) < 0 && errno == EINTR) {
  }
  if (!text.has_value()) {
    return Unavailable(kPython, ": did not end within ", timeout.count(), " s");
  }
  if (!WIFEXITED(exit) || WEXITSTATUS(exit) != 0) {
    return Unavailable(kPython, ": naive_controller.py failed (run it by hand to see why)");
  }
  return *std::move(text);
}

Result<PeerNumbers> MeasurePeer(double seconds, int64_t window, int64_t small_pool,
                                int64_t large_pool) {
  const Result<std::string> text = RunNaiveController(
      {"--bench", Concat(seconds), Concat(window), Concat(small_pool), Concat(large_pool)},
      "/dev/null", Seconds(10 * seconds + kPeerGraceSeconds));
  if (!text.ok()) return text.status();
  PeerNumbers numbers;
  JsonScanner scan(*text);
  scan.EnterObject();
  while (scan.NextKey()) {
    double PeerNumbers::* field = nullptr;
    if (scan.key() == "verdict") field = &PeerNumbers::verdict;
    if (scan.key() == "begin_step") field = &PeerNumbers::begin_step;
    if (scan.key() == "pool_small") field = &PeerNumbers::pool_small;
    if (scan.key() == "pool_large") field = &PeerNumbers::pool_large;
    if (scan.key() == "pool_small_lowest_score") field = &PeerNumbers::pool_small_lowest_score;
    if (scan.key() == "python") {
      scan.Text(numbers.python);
    } else if (field != nullptr) {
      scan.Real(0, std::numeric_limits<double>::max(), "", numbers.*field);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status().At("naive_controller.py");
  return numbers;
}

}  // namespace pace
