#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/check.h"

namespace pace {
namespace {

// A signal handler has no other way to know where to leave word.
std::atomic<int> pipe_to_write = -1;
static_assert(std::atomic<int>::is_always_lock_free, "a handler may not take a lock");

void Remember(int) {
  const int reason = errno;
  const char mark = 0;
  // A full pipe says it already.
  [[maybe_unused]] const ssize_t count = ::write(pipe_to_write.load(), &mark, 1);
  errno = reason;
}

}  // namespace

Interrupt::Interrupt() {
  PACE_CHECK(::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) == 0, std::strerror(errno));
  pipe_to_write = pipe_[1];
  struct sigaction action = {};
  action.sa_handler = Remember;
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

bool Interrupt::Take() {
  bool taken = false;
  char marks[64];
  while (::read(pipe_[0], marks, sizeof(marks)) > 0) taken = true;
  return taken;
}

}  // namespace pace
