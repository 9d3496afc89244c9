// CaptureGate: excludes graph captures while kernels may be loaded.
//
// A kernel is loaded when it is first launched, and CUDA may refuse that while another thread
// captures a graph. So a capture takes the gate exclusively, and work that may launch a kernel for
// the first time shares it: passes without a graph, and the first steps of a trainer. A capture
// that cannot take the gate within a moment is postponed.
// Thread-safety: one gate for the process.
#ifndef PACE_MODEL_CUDA_CAPTURE_GATE_H_
#define PACE_MODEL_CUDA_CAPTURE_GATE_H_

#include <shared_mutex>

namespace pace {

inline std::shared_timed_mutex& CaptureGate() {
  static std::shared_timed_mutex gate;
  return gate;
}

// Holds the gate shared. Instances may be nested within a thread.
class SharedCaptureGate {
 public:
  SharedCaptureGate() {
    if (Depth()++ == 0) CaptureGate().lock_shared();
  }
  ~SharedCaptureGate() {
    if (--Depth() == 0) CaptureGate().unlock_shared();
  }
  SharedCaptureGate(const SharedCaptureGate&) = delete;
  SharedCaptureGate& operator=(const SharedCaptureGate&) = delete;

 private:
  static int& Depth() {
    thread_local int depth = 0;
    return depth;
  }
};

}  // namespace pace

#endif  // PACE_MODEL_CUDA_CAPTURE_GATE_H_
