#include "sandbox/program_slots.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <chrono>
#include <iterator>

namespace pace {
namespace {

constexpr std::chrono::minutes kPatience{10};

}  // namespace

Result<ProgramSlots> ProgramSlots::Make(int64_t count) {
  PACE_CHECK(count >= 1, "no program could ever run");
  FileDescriptor free(
      ::eventfd(static_cast<unsigned>(count), EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC));
  if (!free.valid()) return ErrnoStatus("eventfd");
  return ProgramSlots(std::move(free));
}

Result<bool> ProgramSlots::Take(const Cancellation& cancellation) const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  eventfd_t taken = 0;
  while (::eventfd_read(free_.get(), &taken) != 0) {
    pollfd waiting[] = {{free_.get(), POLLIN, 0},
                        {cancellation.descriptor, cancellation.events, 0}};
    ::poll(waiting, std::size(waiting), 1000);
    if (waiting[1].revents != 0) return false;
    if (std::chrono::steady_clock::now() >= deadline) {
      return Unavailable("no program ended for ", kPatience.count(),
                         " minutes, so none could start (raise tools.max_programs)");
    }
  }
  return true;
}

void ProgramSlots::Give() const {
  ::eventfd_write(free_.get(), 1);
}

}  // namespace pace
