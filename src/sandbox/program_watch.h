// WatchProgram supervises one launched program until it ends.
//
// It reads both streams up to their limit and drops further output, kills the program at its
// deadline or on cancellation, and returns when its whole process tree is gone.
#ifndef PACE_SANDBOX_PROGRAM_WATCH_H_
#define PACE_SANDBOX_PROGRAM_WATCH_H_

#include <cstdint>

#include "core/clock.h"
#include "core/file_descriptor.h"
#include "core/status.h"
#include "sandbox/program.h"

namespace pace {

struct ProgramEnds {
  FileDescriptor control;
  FileDescriptor out;
  FileDescriptor error;
};

struct WatchLimits {
  Seconds timeout{30};
  int64_t max_output_bytes = 0;
  // The first process has no pid namespace: it is asked to end its process tree before it is
  // killed.
  bool ask_first = false;
};

// Once the program has started, everything that happens is its result: if its first process sends
// nothing, or a malformed message, the program counts as killed, and a process that outlives its
// SIGKILL by 30 s is left to the kernel. An error therefore means that the program was not
// started; after kUnavailable another attempt may help.
Result<ProgramResult> WatchProgram(ProgramEnds ends, const WatchLimits& limits,
                                   const Cancellation& cancellation);

}  // namespace pace

#endif  // PACE_SANDBOX_PROGRAM_WATCH_H_
