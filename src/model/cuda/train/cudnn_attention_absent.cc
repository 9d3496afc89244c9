// A build without cuDNN's frontend.
#include <cstdlib>

#include "core/check.h"
#include "model/cuda/train/cudnn_attention.h"

namespace pace {
namespace {

[[noreturn]] void WithoutCudnn() {
  PACE_CHECK(false, "a build without cuDNN's frontend");
  std::abort();
}

}  // namespace

bool HasCudnnAttention(const AttentionHeads&, const AttentionPlanSize&) {
  return false;
}
std::vector<at::Tensor> CudnnForward(const AttentionHeads&, const AttentionPlanSize&,
                                     const at::Tensor&, const AttentionInputs&) {
  WithoutCudnn();
}
AttentionInputs CudnnBackward(const AttentionHeads&, const AttentionPlanSize&, const at::Tensor&,
                              const AttentionInputs&, const std::vector<at::Tensor>&,
                              const at::Tensor&) {
  WithoutCudnn();
}

}  // namespace pace
