#include "model/cuda/stopwatch.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace pace {
namespace {

cudaStream_t Stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
}

}  // namespace

struct CudaStopwatch::State {
  State() {
    C10_CUDA_CHECK(cudaEventCreate(&begin));
    C10_CUDA_CHECK(cudaEventCreate(&end));
  }
  ~State() {
    (void)cudaEventDestroy(begin);
    (void)cudaEventDestroy(end);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

CudaStopwatch::CudaStopwatch() : state_(std::make_unique<State>()) {}
CudaStopwatch::~CudaStopwatch() = default;

void CudaStopwatch::Start() {
  C10_CUDA_CHECK(cudaEventRecord(state_->begin, Stream()));
}

double CudaStopwatch::Stop() {
  C10_CUDA_CHECK(cudaEventRecord(state_->end, Stream()));
  C10_CUDA_CHECK(cudaEventSynchronize(state_->end));
  float milliseconds = 0;
  C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, state_->begin, state_->end));
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace pace
