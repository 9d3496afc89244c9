// ProgramSlots: bounds the number of concurrent programs.
//
// A semaphore on a file descriptor, so that waiting can be cancelled.
// Thread-safety: Take and Give may be called from any thread.
#ifndef PACE_SANDBOX_PROGRAM_SLOTS_H_
#define PACE_SANDBOX_PROGRAM_SLOTS_H_

#include <cstdint>
#include <utility>

#include "core/file_descriptor.h"
#include "core/status.h"
#include "sandbox/program.h"

namespace pace {

class ProgramSlots {
 public:
  // REQUIRES: 1 <= count
  static Result<ProgramSlots> Make(int64_t count);

  // True: the caller holds a slot until Give. False: cancelled. An error: no slot became free for
  // ten minutes.
  Result<bool> Take(const Cancellation& cancellation) const;
  void Give() const;

 private:
  explicit ProgramSlots(FileDescriptor free) : free_(std::move(free)) {}
  FileDescriptor free_;
};

}  // namespace pace

#endif  // PACE_SANDBOX_PROGRAM_SLOTS_H_
