// CaptureGate: keeps the capture of a graph apart from work that may load kernels.
//
// A kernel is loaded when it is first launched, and CUDA may refuse that while
// another thread captures a graph. So captures are exclusive, and whatever may run
// a kernel for the first time shares the gate: passes that are not graphs yet, and
// the first steps of a trainer. A capture that finds it closed, and closed still a
// moment later, is put off.
// Thread-safety: the gate is one for the process.
#ifndef PACE_MODEL_CUDA_CAPTURE_GATE_H_
#define PACE_MODEL_CUDA_CAPTURE_GATE_H_

#include <shared_mutex>

namespace pace {

inline std::shared_timed_mutex& CaptureGate() {
  static std::shared_timed_mutex gate;
  return gate;
}

}  // namespace pace

#endif  // PACE_MODEL_CUDA_CAPTURE_GATE_H_
