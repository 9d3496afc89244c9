// A build without CUDA: every Has... is false, so the other functions are never called.
#include <cstdlib>

#include "core/check.h"
#include "model/cuda/train/training_functions.h"

namespace pace {
namespace {

using In = const at::Tensor&;

[[noreturn]] void NeverCalled() {
  PACE_CHECK(false, "a build without CUDA");
  std::abort();
}

}  // namespace

bool HasCudaNorm(In) {
  return false;
}
bool HasCudaGate(In) {
  return false;
}
bool HasCudaProducts(In) {
  return false;
}
bool HasCudaAttention(const ModelConfig&, at::ScalarType, at::Device) {
  return false;
}
bool HasCudaLogits(In) {
  return false;
}
void CudaNorm(In, In, double, In) {
  NeverCalled();
}
at::Tensor CudaNormGradient(In, In, In, double, In, In) {
  NeverCalled();
}
void CudaGate(In, In) {
  NeverCalled();
}
void CudaGateGradient(In, In, In) {
  NeverCalled();
}
at::Tensor CudaLinear(In, const CudaProduct&) {
  NeverCalled();
}
CudaSequences::CudaSequences(const ModelConfig& config, const std::vector<int64_t>& lengths, In cos,
                             In sin)
    : num_heads(static_cast<int>(config.num_heads)),
      num_kv_heads(static_cast<int>(config.num_kv_heads)),
      head_dim(static_cast<int>(config.head_dim)),
      norm_epsilon(config.norm_epsilon),
      cosines(cos),
      sines(sin),
      attention({}, lengths, cos.device()) {}
at::Tensor CudaAttend(In, In, In, const c10::intrusive_ptr<CudaSequences>&, KeptResult*) {
  NeverCalled();
}
void CudaScoreLogits(In, In, double, In, In, In) {
  NeverCalled();
}
at::Tensor CudaLogitGradients(In, In, double, In, In, In, In, at::ScalarType) {
  NeverCalled();
}
struct CudaStopwatch::State {};
CudaStopwatch::CudaStopwatch() {
  NeverCalled();
}
CudaStopwatch::~CudaStopwatch() = default;
void CudaStopwatch::Start() {}
double CudaStopwatch::Stop() {
  return 0;
}
bool HasCudaAdamW(In) {
  return false;
}
void CudaAdamWStep(const CudaAdamW&, In, In, In, In) {
  NeverCalled();
}
double CudaSumOfSquares(const std::vector<at::Tensor>&) {
  NeverCalled();
}
void FinishCudaWork() {}
Status LimitTrainingMemory(int64_t) {
  return Unavailable("device = cuda: this build has no CUDA (cmake --preset cuda builds with it)");
}
int64_t FreeTrainingMemory(bool) {
  return 0;
}
int64_t MostTrainingMemory() {
  return 0;
}
void ReleaseTrainingMemory() {}

}  // namespace pace
