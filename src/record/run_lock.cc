#include "record/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace pace {
namespace {

// What the holder wrote, if it is a number.
std::string HolderOf(int descriptor) {
  char text[32] = {};
  const ssize_t size = ::pread(descriptor, text, sizeof(text) - 1, 0);
  const std::string holder(text, size > 0 ? strcspn(text, "\n") : 0);
  const bool is_number =
      !holder.empty() && holder.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? " (process " + holder + ")" : "";
}

}  // namespace

Result<RunLock> RunLock::Take(const std::string& directory) {
  const std::string path = directory + "/lock";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) return Unavailable(path, ": cannot be opened: ", std::strerror(errno));
  RunLock lock(descriptor);
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) {
      return Unavailable(directory, ": another process", HolderOf(descriptor),
                         " is running in this directory (wait for it to end, or stop it)");
    }
    return lock;  // no locks here
  }
  const std::string holder = Concat(::getpid(), "\n");
  const bool written =
      ::ftruncate(descriptor, 0) == 0 &&
      ::pwrite(descriptor, holder.data(), holder.size(), 0) == static_cast<ssize_t>(holder.size());
  // A full disk may still be resumed from: whoever holds the lock is a courtesy.
  (void)written;
  return lock;
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace pace
