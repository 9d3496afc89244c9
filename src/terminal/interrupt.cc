#include "terminal/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "core/check.h"

namespace pace {
namespace {

// A signal handler has no other way to know where to leave word.
std::atomic<int> pipe_to_write = -1;
static_assert(std::atomic<int>::is_always_lock_free, "a handler may not take a lock");

void RememberSignal(int) {
  const int reason = errno;
  const char mark = 0;
  // A full pipe says it already.
  [[maybe_unused]] const ssize_t count = ::write(pipe_to_write.load(), &mark, 1);
  errno = reason;
}

// The first signal that asked to stop, and when it came.
std::atomic<int> stop_signal = 0;
std::atomic<int64_t> stop_time = 0;  // nanoseconds; 0 = none has come
static_assert(std::atomic<int64_t>::is_always_lock_free, "a handler may not take a lock");

constexpr int64_t kSameRequest = 2'000'000'000;  // nanoseconds

int64_t Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void RememberStop(int signal) {
  const int reason = errno;
  const int64_t now = Now();
  int64_t first = 0;
  if (stop_time.compare_exchange_strong(first, now)) {
    stop_signal = signal;
  } else if (signal == SIGINT || now - first >= kSameRequest) {
    ::_exit(128 + signal);
  }
  errno = reason;
}

void LetTheWriteFail(int) {}

}  // namespace

Interrupt::Interrupt() {
  PACE_CHECK(::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) == 0, std::strerror(errno));
  pipe_to_write = pipe_[1];
  struct sigaction action = {};
  action.sa_handler = RememberSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_, nullptr);
  pipe_to_write = -1;
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

StopSignals::StopSignals() {
  stop_signal = 0;
  stop_time = 0;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    const int signal = kSignals[i];
    // A handler, unlike SIG_IGN, is not inherited by the programs that tools run.
    struct sigaction action = {};
    action.sa_handler = signal == SIGXFSZ || signal == SIGPIPE ? LetTheWriteFail : RememberStop;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal, nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int StopSignals::signal() const {
  return stop_signal;
}

std::string StopSignals::name() const {
  switch (signal()) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "";
  }
}

bool Interrupt::Take() {
  bool taken = false;
  char marks[64];
  while (::read(pipe_[0], marks, sizeof(marks)) > 0) taken = true;
  return taken;
}

}  // namespace pace
