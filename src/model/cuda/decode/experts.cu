// Routing of rows to experts, and the weighted sum of their outputs.
#include "model/cuda/decode/product_kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

constexpr int kGroupSlots = 8;
constexpr int kLaneExperts = kMaxExperts / 32;

// One warp for a row; lane l holds experts l, l + 32, ...
__global__ void RouteKernel(RouteArguments a) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int lane = static_cast<int>(threadIdx.x);
  const int64_t row = blockIdx.x;
  const float* const logits = a.logits + row * a.stride;
  float largest = -INFINITY;
  for (int e = lane; e < a.num_experts; e += 32) largest = fmaxf(largest, logits[e]);
  largest = WarpMax(largest);
  float sum = 0;
  for (int e = lane; e < a.num_experts; e += 32) sum += expf(logits[e] - largest);
  sum = WarpSum(sum);

  uint32_t taken = 0;  // a bit for each expert of this lane
  float total = 0;
  for (int choice = 0; choice < a.num_chosen; ++choice) {
    float best = -1;
    int which = a.num_experts;
    for (int i = 0; i < kLaneExperts && lane + i * 32 < a.num_experts; ++i) {
      if ((taken >> i & 1U) != 0) continue;
      const float probability = expf(logits[lane + i * 32] - largest) / sum;
      if (probability > best) {
        best = probability;
        which = lane + i * 32;
      }
    }
    // The first of the largest.
    for (unsigned step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, best, step);
      const int other_which = __shfl_xor_sync(kAllLanes, which, step);
      if (other > best || (other == best && other_which < which)) {
        best = other;
        which = other_which;
      }
    }
    if (which >= a.num_experts) which = choice;  // nothing but NaN
    if (which % 32 == lane) taken |= 1U << (which / 32);
    total += best;
    if (lane != 0) continue;
    a.experts[row * a.num_chosen + choice] = which;
    a.weights[row * a.num_chosen + choice] = best;
  }
  if (!a.normalize || lane != 0) return;
  for (int choice = 0; choice < a.num_chosen; ++choice)
    a.weights[row * a.num_chosen + choice] /= total;
}

// One block; thread e gathers the slots of expert e, in order.
__global__ void GroupKernel(const int32_t* experts, int64_t num_slots, int num_experts,
                            ExpertGroup* groups, int32_t* num_groups) {
  __shared__ int first[kMaxExperts + 1];
  ReleaseSuccessor();
  WaitForPredecessor();
  const int expert = static_cast<int>(threadIdx.x);
  int count = 0;
  for (int64_t slot = 0; slot < num_slots; ++slot) count += experts[slot] == expert ? 1 : 0;
  first[expert + 1] = expert < num_experts ? (count + kGroupSlots - 1) / kGroupSlots : 0;
  __syncthreads();
  if (expert == 0) {
    first[0] = 0;
    for (int e = 0; e < num_experts; ++e) first[e + 1] += first[e];
    *num_groups = first[num_experts];
  }
  __syncthreads();
  if (expert >= num_experts) return;
  int found = 0;
  for (int64_t slot = 0; slot < num_slots && found < count; ++slot) {
    if (experts[slot] != expert) continue;
    ExpertGroup& group = groups[first[expert] + found / kGroupSlots];
    group.slots[found % kGroupSlots] = static_cast<int32_t>(slot);
    if (found % kGroupSlots == 0) {
      group.expert = expert;
      group.num_slots = min(kGroupSlots, count - found);
    }
    ++found;
  }
}

__global__ void CombineKernel(float* x, int64_t stride, const float* outputs, const float* weights,
                              int64_t width, int num_chosen) {
  ReleaseSuccessor();
  WaitForPredecessor();
  const int64_t row = blockIdx.x;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    float sum = 0;
    for (int choice = 0; choice < num_chosen; ++choice) {
      const int64_t slot = row * num_chosen + choice;
      sum += weights[slot] * outputs[slot * stride + i];
    }
    x[row * stride + i] += sum;
  }
}

}  // namespace

void Route(const RouteArguments& a, cudaStream_t stream) {
  Launch(RouteKernel, static_cast<unsigned>(a.num_rows), kWarp, 0, stream, a);
}

int64_t MaxExpertGroups(int64_t num_slots, int64_t num_experts) {
  const int64_t bound = num_experts + num_slots / kGroupSlots;
  return num_slots < bound ? num_slots : bound;
}

void GroupSlots(const int32_t* experts, int64_t num_slots, int num_experts, ExpertGroup* groups,
                int32_t* num_groups, cudaStream_t stream) {
  const unsigned threads = (static_cast<unsigned>(num_experts) + kWarp - 1) / kWarp * kWarp;
  Launch(GroupKernel, 1, threads, 0, stream, experts, num_slots, num_experts, groups, num_groups);
}

void CombineExperts(float* x, int64_t stride, const float* outputs, const float* weights,
                    int64_t num_rows, int64_t width, int num_chosen, cudaStream_t stream) {
  Launch(CombineKernel, static_cast<unsigned>(num_rows), 256, 0, stream, x, stride, outputs,
         weights, width, num_chosen);
}

}  // namespace pace::cuda
