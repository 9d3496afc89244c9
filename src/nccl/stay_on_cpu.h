// StayOnCpu: while it lives, its thread stays on the processor that it is on, and so do the threads
// that are started from it.
//
//   const StayOnCpu here;
//   PACE_RETURN_IF_ERROR(group->Broadcast(weights, weights, count, type, 0, stream));
//
// NCCL starts a thread for every call of a communicator that does not block. Such a thread usually
// begins on another processor, which must be woken first. In a virtual machine with 16 processors
// this cost 0.2 to 0.4 ms a call (docs/gpu.md, "Weights to servers").
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
