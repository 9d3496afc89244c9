// RunLock: one process at a time writes a run directory.
//
//   Result<RunLock> lock = RunLock::Take("runs/tiny");
//
// The lock is flock(2) on the file `lock` in the directory, so the kernel releases it
// however its holder ends. The file holds the holder's process id, for the message that
// refuses a second one, and stays behind. File systems without locks are used without.
// Thread-safety: none.
#ifndef PACE_RECORD_RUN_LOCK_H_
#define PACE_RECORD_RUN_LOCK_H_

#include <string>
#include <utility>

#include "core/status.h"

namespace pace {

class RunLock {
 public:
  // The directory exists. An error names the process that holds it, where it is known.
  static Result<RunLock> Take(const std::string& directory);

  RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace pace

#endif  // PACE_RECORD_RUN_LOCK_H_
