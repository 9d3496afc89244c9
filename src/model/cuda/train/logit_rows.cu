// Rows of logits: scores of a token in each, and the gradient back.
#include "model/cuda/launch.cuh"
#include "model/cuda/train/training_kernels.h"

namespace pace::cuda {
namespace {

constexpr unsigned kThreads = 1024;

// Of some logits: the largest, and sums relative to it.
struct Moments {
  float highest;
  float sum;       // of exp(x - highest)
  float weighted;  // of exp(x - highest) x

  __device__ static Moments OfNothing() { return {-INFINITY, 0, 0}; }
  __device__ void Raise(float to) {
    // Nothing may have been seen yet.
    const float factor = highest == to ? 1.0F : __expf(highest - to);
    sum *= factor;
    weighted *= factor;
    highest = to;
  }
  __device__ void Add(float x) {
    if (x > highest) Raise(x);
    const float share = __expf(x - highest);
    sum += share;
    weighted += share * x;
  }
  __device__ void Add(Moments other) {
    const float to = fmaxf(highest, other.highest);
    if (to == -INFINITY) return;
    Raise(to);
    other.Raise(to);
    sum += other.sum;
    weighted += other.weighted;
  }
  __device__ Moments AtLane(unsigned step) const {
    return {__shfl_xor_sync(kAllLanes, highest, step), __shfl_xor_sync(kAllLanes, sum, step),
            __shfl_xor_sync(kAllLanes, weighted, step)};
  }
};

__device__ Moments WarpMoments(Moments own) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) own.Add(own.AtLane(step));
  return own;
}

// Rows that can be read four logits at a time.
__device__ bool IsAligned(const LogitRows& a) {
  return a.stride % 4 == 0 && a.vocabulary % 4 == 0 &&
         reinterpret_cast<uintptr_t>(a.logits) % 16 == 0;
}

__global__ void ScoreKernel(LogitRows a, float* logprobs, float* log_sums, float* entropies) {
  __shared__ Moments shared[kWarp];
  const int64_t row = blockIdx.x;
  const float* const x = a.logits + row * a.stride;
  Moments own = Moments::OfNothing();
  if (IsAligned(a)) {
    for (int64_t i = 4 * threadIdx.x; i < a.vocabulary; i += 4 * blockDim.x) {
      const float4 four = *reinterpret_cast<const float4*>(x + i);
      own.Add(a.scale * four.x);
      own.Add(a.scale * four.y);
      own.Add(a.scale * four.z);
      own.Add(a.scale * four.w);
    }
  } else {
    for (int64_t i = threadIdx.x; i < a.vocabulary; i += blockDim.x) own.Add(a.scale * x[i]);
  }
  own = WarpMoments(own);
  const unsigned warp = threadIdx.x / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  if (lane == 0) shared[warp] = own;
  __syncthreads();
  if (warp > 0) return;
  own = WarpMoments(shared[lane]);
  if (lane > 0) return;
  const float log_sum = own.highest + logf(own.sum);
  logprobs[row] = a.scale * x[a.targets[row]] - log_sum;
  log_sums[row] = log_sum;
  entropies[row] = log_sum - own.weighted / own.sum;
}

__device__ void StoreFour(float* to, float a, float b, float c, float d) {
  *reinterpret_cast<float4*>(to) = make_float4(a, b, c, d);
}
__device__ void StoreFour(Half* to, float a, float b, float c, float d) {
  *reinterpret_cast<uint2*>(to) = make_uint2(PackHalves(a, b), PackHalves(c, d));
}

// -p (g + h (log p + H)) scale, and scale g more for the target.
template <typename T>
__global__ void BackwardKernel(LogitRows a, LogitRowGradients gradients, T* out) {
  const int64_t row = blockIdx.x;
  const float* const x = a.logits + row * a.stride;
  T* const to = out + row * a.vocabulary;
  const int64_t target = a.targets[row];
  const float log_sum = gradients.log_sums[row];
  const float g = gradients.of_logprob[row];
  const float h = gradients.of_entropy == nullptr ? 0.0F : gradients.of_entropy[row];
  const float entropy = gradients.entropies[row];
  const auto gradient = [&](int64_t i, float value) {
    const float log_share = a.scale * value - log_sum;
    const float d = -__expf(log_share) * (g + h * (log_share + entropy));
    return a.scale * (i == target ? d + g : d);
  };
  if (IsAligned(a)) {
    for (int64_t i = 4 * threadIdx.x; i < a.vocabulary; i += 4 * blockDim.x) {
      const float4 four = *reinterpret_cast<const float4*>(x + i);
      StoreFour(to + i, gradient(i, four.x), gradient(i + 1, four.y), gradient(i + 2, four.z),
                gradient(i + 3, four.w));
    }
  } else {
    for (int64_t i = threadIdx.x; i < a.vocabulary; i += blockDim.x) {
      to[i] = FromFloat<T>(gradient(i, x[i]));
    }
  }
}

}  // namespace

void ScoreLogitRows(const LogitRows& rows, float* logprobs, float* log_sums, float* entropies,
                    cudaStream_t stream) {
  ScoreKernel<<<static_cast<unsigned>(rows.num_rows), kThreads, 0, stream>>>(rows, logprobs,
                                                                             log_sums, entropies);
}

void LogitRowsBackward(const LogitRows& rows, const LogitRowGradients& gradients, void* d_logits,
                       Element element, cudaStream_t stream) {
  const auto num_rows = static_cast<unsigned>(rows.num_rows);
  if (element == Element::kHalf) {
    BackwardKernel<<<num_rows, kThreads, 0, stream>>>(rows, gradients,
                                                      static_cast<Half*>(d_logits));
  } else {
    BackwardKernel<<<num_rows, kThreads, 0, stream>>>(rows, gradients,
                                                      static_cast<float*>(d_logits));
  }
}

}  // namespace pace::cuda
