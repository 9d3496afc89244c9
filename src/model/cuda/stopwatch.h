// CudaStopwatch: the device's own time between two points of LibTorch's current
// stream, whatever the host did meanwhile.
// Thread-safety: none.
#ifndef PACE_MODEL_CUDA_STOPWATCH_H_
#define PACE_MODEL_CUDA_STOPWATCH_H_

#include <memory>

namespace pace {

// REQUIRES: a GPU
class CudaStopwatch {
 public:
  CudaStopwatch();
  ~CudaStopwatch();

  void Start();
  // Waits for what was queued since; seconds.
  double Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pace

#endif  // PACE_MODEL_CUDA_STOPWATCH_H_
