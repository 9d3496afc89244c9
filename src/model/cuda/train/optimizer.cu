// Gradient norms and AdamW: one pass over memory each.
#include <algorithm>

#include "model/cuda/launch.cuh"
#include "model/cuda/train/training_kernels.h"

namespace pace::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kQuad = 4;  // floats at a time
constexpr int64_t kMaxBlocks = 132 * 8;

// Enough blocks for a large tensor, few for a small one.
unsigned NumBlocks(int64_t count) {
  const int64_t blocks = (count + kQuad * kThreads - 1) / (kQuad * kThreads);
  return static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, kMaxBlocks));
}

bool IsAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % sizeof(float4) == 0;
}

__device__ float Updated(const AdamWUpdate& a, float parameter, float gradient, float& first,
                         float& second) {
  const float g = gradient * a.gradient_factor;
  first = a.beta1 * first + (1 - a.beta1) * g;
  second = a.beta2 * second + (1 - a.beta2) * g * g;
  const float decayed = parameter - a.decay * parameter;
  return decayed - a.step_size * first / (sqrtf(second) / a.root_correction + a.epsilon);
}

__global__ void AdamWKernel(AdamWUpdate a, int64_t num_quads) {
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t num_threads = int64_t{gridDim.x} * blockDim.x;
  auto* const parameters = reinterpret_cast<float4*>(a.parameter);
  const auto* const gradients = reinterpret_cast<const float4*>(a.gradient);
  auto* const firsts = reinterpret_cast<float4*>(a.first);
  auto* const seconds = reinterpret_cast<float4*>(a.second);
  for (int64_t i = thread; i < num_quads; i += num_threads) {
    float4 p = parameters[i];
    const float4 g = gradients[i];
    float4 m = firsts[i];
    float4 v = seconds[i];
    p.x = Updated(a, p.x, g.x, m.x, v.x);
    p.y = Updated(a, p.y, g.y, m.y, v.y);
    p.z = Updated(a, p.z, g.z, m.z, v.z);
    p.w = Updated(a, p.w, g.w, m.w, v.w);
    parameters[i] = p;
    firsts[i] = m;
    seconds[i] = v;
  }
  for (int64_t i = num_quads * kQuad + thread; i < a.count; i += num_threads) {
    a.parameter[i] = Updated(a, a.parameter[i], a.gradient[i], a.first[i], a.second[i]);
  }
}

__device__ double Square(float x) {
  return static_cast<double>(x) * static_cast<double>(x);
}

// Sums in double, always in the same order.
__global__ void SquaresKernel(const float* x, int64_t count, int64_t num_quads, double* partials) {
  __shared__ double shared[kThreads];
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t num_threads = int64_t{gridDim.x} * blockDim.x;
  const auto* const quads = reinterpret_cast<const float4*>(x);
  double sum = 0;
  for (int64_t i = thread; i < num_quads; i += num_threads) {
    const float4 four = quads[i];
    sum += (Square(four.x) + Square(four.y)) + (Square(four.z) + Square(four.w));
  }
  for (int64_t i = num_quads * kQuad + thread; i < count; i += num_threads) sum += Square(x[i]);
  shared[threadIdx.x] = sum;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) partials[blockIdx.x] = shared[0];
}

}  // namespace

void ApplyAdamW(const AdamWUpdate& update, cudaStream_t stream) {
  const bool is_aligned = IsAligned(update.parameter) && IsAligned(update.gradient) &&
                          IsAligned(update.first) && IsAligned(update.second);
  AdamWKernel<<<NumBlocks(update.count), kThreads, 0, stream>>>(
      update, is_aligned ? update.count / kQuad : 0);
}

int64_t NumSquarePartials(int64_t count) {
  return NumBlocks(count);
}

void SumSquares(const float* x, int64_t count, double* partials, cudaStream_t stream) {
  SquaresKernel<<<NumBlocks(count), kThreads, 0, stream>>>(
      x, count, IsAligned(x) ? count / kQuad : 0, partials);
}

}  // namespace pace::cuda
