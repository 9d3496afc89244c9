// A build without CUDA.
#include <cstdlib>

#include "core/check.h"
#include "model/cuda/train/training_functions.h"

namespace pace {
namespace {

[[noreturn]] void NeverCalled() {
  PACE_CHECK(false, "a build without CUDA");
  std::abort();
}

}  // namespace

bool HasCudaNorm(const at::Tensor& /*x*/) {
  return false;
}
bool HasCudaGate(const at::Tensor& /*gate_up*/) {
  return false;
}
bool HasCudaProducts(const at::Tensor& /*x*/) {
  return false;
}
bool HasCudaAttention(const ModelConfig& /*config*/, at::ScalarType /*dtype*/,
                      at::Device /*device*/) {
  return false;
}
bool HasCudaLogits(const at::Tensor& /*logits*/) {
  return false;
}
void CudaNorm(const at::Tensor& /*x*/, const at::Tensor& /*weight*/, double /*epsilon*/,
              const at::Tensor& /*y*/) {
  NeverCalled();
}
at::Tensor CudaNormGradient(const at::Tensor& /*g*/, const at::Tensor& /*x*/,
                            const at::Tensor& /*weight*/, double /*epsilon*/,
                            const at::Tensor& /*dx*/) {
  NeverCalled();
}
void CudaGate(const at::Tensor& /*gate_up*/, const at::Tensor& /*y*/) {
  NeverCalled();
}
void CudaGateGradient(const at::Tensor& /*g*/, const at::Tensor& /*gate_up*/,
                      const at::Tensor& /*d_gate_up*/) {
  NeverCalled();
}
at::Tensor CudaLinear(const at::Tensor& /*x*/, const CudaProduct& /*product*/) {
  NeverCalled();
}
PackedBounds::PackedBounds(const std::vector<int64_t>& /*lengths*/, at::Device /*device*/) {
  NeverCalled();
}
CudaSequences::CudaSequences(const ModelConfig& config, const std::vector<int64_t>& lengths,
                             const at::Tensor& cos, const at::Tensor& sin)
    : num_heads(static_cast<int>(config.num_heads)),
      num_kv_heads(static_cast<int>(config.num_kv_heads)),
      head_dim(static_cast<int>(config.head_dim)),
      norm_epsilon(config.norm_epsilon),
      cosines(cos),
      sines(sin),
      bounds(lengths, cos.device()) {}
at::Tensor CudaAttend(const at::Tensor& /*qkv*/, const at::Tensor& /*query_norm*/,
                      const at::Tensor& /*key_norm*/,
                      const c10::intrusive_ptr<CudaSequences>& /*sequences*/) {
  NeverCalled();
}
void CudaScoreLogits(const at::Tensor& /*logits*/, const at::Tensor& /*targets*/,
                     double /*temperature*/, const at::Tensor& /*logprobs*/,
                     const at::Tensor& /*log_sums*/, const at::Tensor& /*entropies*/) {
  NeverCalled();
}
at::Tensor CudaLogitGradients(const at::Tensor& /*logits*/, const at::Tensor& /*targets*/,
                              double /*temperature*/, const at::Tensor& /*log_sums*/,
                              const at::Tensor& /*entropies*/, const at::Tensor& /*of_logprob*/,
                              const at::Tensor& /*of_entropy*/, at::ScalarType /*dtype*/) {
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
void FinishCudaWork() {}
Status LimitTrainingMemory(int64_t /*num_bytes*/) {
  return Unavailable("device = cuda: this build has no CUDA (cmake --preset cuda builds with it)");
}
void ReleaseTrainingMemory() {}

}  // namespace pace
