// StayOnCpu: while it lives, its thread stays on the processor that it is on, and so do the threads
// that are started from it.
//
//   const StayOnCpu here;
//   PACE_RETURN_IF_ERROR(group->Broadcast(weights, weights, count, type, 0, stream));
//
// NCCL starts a thread for every call of a communicator that does not block. On another processor,
// which must be woken first, such a thread takes up to 0.3 ms to begin and to be joined; on the
// caller's, some microseconds.
// Thread-safety: it ends on the thread that it began on.
#ifndef PACE_NCCL_STAY_ON_CPU_H_
#define PACE_NCCL_STAY_ON_CPU_H_

#include <sched.h>

namespace pace {

class StayOnCpu {
 public:
  // Where the system does not allow it, nothing is changed.
  StayOnCpu();
  ~StayOnCpu();
  StayOnCpu(const StayOnCpu&) = delete;
  StayOnCpu& operator=(const StayOnCpu&) = delete;

 private:
  bool stays_ = false;
  cpu_set_t before_ = {};
};

}  // namespace pace

#endif  // PACE_NCCL_STAY_ON_CPU_H_
