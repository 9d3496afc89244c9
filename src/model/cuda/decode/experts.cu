// Routing of rows to experts, and the weighted sum of their outputs.
#include "model/cuda/decode/product_kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

constexpr int kGroupSlots = 8;
constexpr int kLaneExperts = kMaxExperts / 32;
// Of GroupKernel: slots that a warp loads at a time.
constexpr int kSlotsAtOnce = 256;
constexpr int kGroupThreads = 1024;

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

// Calls found(index, slot) for the slots of this expert, in order, where index counts them. All
// lanes of a warp take part. Returns the number of slots.
template <typename Found>
__device__ int ForSlots(const int32_t* experts, int num_slots, int expert, const Found& found) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  int count = 0;
  for (int first = 0; first < num_slots; first += kSlotsAtOnce) {
    int32_t mine[kSlotsAtOnce / 32];
#pragma unroll
    for (int i = 0; i < kSlotsAtOnce / 32; ++i) {
      const int slot = first + i * 32 + lane;
      mine[i] = slot < num_slots ? experts[slot] : -1;
    }
#pragma unroll
    for (int i = 0; i < kSlotsAtOnce / 32; ++i) {
      const unsigned equal = __ballot_sync(kAllLanes, mine[i] == expert);
      if (mine[i] == expert)
        found(count + __popc(equal & ((1U << lane) - 1)), first + i * 32 + lane);
      count += __popc(equal);
    }
  }
  return count;
}

// One block; a warp gathers the slots of an expert, in order.
__global__ void __launch_bounds__(kGroupThreads)
    GroupKernel(const int32_t* experts, int num_slots, int num_experts, ExpertGroup* groups,
                int32_t* num_groups) {
  __shared__ int counts[kMaxExperts];
  __shared__ int first[kMaxExperts];
  ReleaseSuccessor();
  WaitForPredecessor();
  constexpr int kWarps = kGroupThreads / 32;
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (int expert = warp; expert < num_experts; expert += kWarps) {
    const int count = ForSlots(experts, num_slots, expert, [](int, int) {});
    if (lane == 0) counts[expert] = count;
  }
  __syncthreads();
  if (warp == 0) {
    int sum = 0;
    for (int begin = 0; begin < num_experts; begin += 32) {
      const int expert = begin + lane;
      const int mine = expert < num_experts ? (counts[expert] + kGroupSlots - 1) / kGroupSlots : 0;
      int until = mine;  // of this lane and those before it
      for (unsigned step = 1; step < kWarp; step *= 2) {
        const int other = __shfl_up_sync(kAllLanes, until, step);
        if (lane >= static_cast<int>(step)) until += other;
      }
      if (expert < num_experts) first[expert] = sum + until - mine;
      sum += __shfl_sync(kAllLanes, until, 31);
    }
    if (lane == 0) *num_groups = sum;
  }
  __syncthreads();
  for (int expert = warp; expert < num_experts; expert += kWarps) {
    const int count = counts[expert];
    if (count == 0) continue;
    ForSlots(experts, num_slots, expert, [&](int index, int slot) {
      ExpertGroup& group = groups[first[expert] + index / kGroupSlots];
      group.slots[index % kGroupSlots] = slot;
      if (index % kGroupSlots != 0) return;
      group.expert = expert;
      group.num_slots = min(kGroupSlots, count - index);
    });
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
  Launch(GroupKernel, 1, kGroupThreads, 0, stream, experts, static_cast<int>(num_slots),
         num_experts, groups, num_groups);
}

void CombineExperts(float* x, int64_t stride, const float* outputs, const float* weights,
                    int64_t num_rows, int64_t width, int num_chosen, cudaStream_t stream) {
  Launch(CombineKernel, static_cast<unsigned>(num_rows), 256, 0, stream, x, stride, outputs,
         weights, width, num_chosen);
}

}  // namespace pace::cuda
