// Norms and gates of training, with their gradients.
#include <algorithm>

#include "model/cuda/train/row_vector.cuh"

namespace pace::cuda {
namespace {

constexpr int64_t kMaxPartials = 2048;
constexpr unsigned kGateThreads = 256;
constexpr unsigned kSumWarps = 32;

// A thread holds one vector of a row.
unsigned NormThreads(int64_t width) {
  const auto vectors = static_cast<unsigned>(width / kRowVector);
  return (vectors + kWarp - 1) / kWarp * kWarp;
}

template <typename T>
__global__ void NormForwardKernel(TrainingNorm a, T* y) {
  __shared__ float scratch[kWarp];
  const int64_t at = threadIdx.x * kRowVector;
  const bool is_inside = at < a.width;
  const int64_t row = blockIdx.x * a.width;
  RowVector x;
  float squares = 0;
  if (is_inside) {
    x.Load(static_cast<const T*>(a.x) + row + at);
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) squares += x.x[i] * x.x[i];
  }
  const float mean = BlockSum(squares, scratch) / static_cast<float>(a.width);
  if (!is_inside) return;
  const float factor = rsqrtf(mean + a.epsilon);
  RowVector weight;
  weight.Load(a.weight + at);
#pragma unroll
  for (int i = 0; i < kRowVector; ++i) {
    // As the composition rounds: first the normed row, then its product.
    x.x[i] = weight.x[i] * ToFloat(FromFloat<T>(x.x[i] * factor));
  }
  x.Store(y + row + at);
}

// d x = r (g w) - x r^3 mean(g w x); d weight = sum over rows of g x r.
template <typename T>
__global__ void NormBackwardKernel(TrainingNorm a, const T* dy, const T* addend, T* dx,
                                   float* partials) {
  __shared__ float2 scratch[kWarp];
  const int64_t at = threadIdx.x * kRowVector;
  const bool is_inside = at < a.width;
  const auto count = static_cast<float>(a.width);
  RowVector weight{};
  RowVector d_weight{};
  if (is_inside) weight.Load(a.weight + at);
  for (int64_t row = blockIdx.x; row < a.num_rows; row += gridDim.x) {
    RowVector x{};
    RowVector g{};
    float2 sums = make_float2(0, 0);  // of x^2, and of g w x
    if (is_inside) {
      x.Load(static_cast<const T*>(a.x) + row * a.width + at);
      g.Load(dy + row * a.width + at);
#pragma unroll
      for (int i = 0; i < kRowVector; ++i) {
        sums.x += x.x[i] * x.x[i];
        sums.y += g.x[i] * weight.x[i] * x.x[i];
      }
    }
    sums = BlockSum(sums, scratch);
    const float factor = rsqrtf(sums.x / count + a.epsilon);
    const float pull = sums.y / count * factor * factor * factor;
    if (!is_inside) continue;
#pragma unroll
    for (int i = 0; i < kRowVector; ++i) {
      d_weight.x[i] += g.x[i] * x.x[i] * factor;
      x.x[i] = g.x[i] * weight.x[i] * factor - x.x[i] * pull;
    }
    if (addend != nullptr) {
      g.Load(addend + row * a.width + at);
#pragma unroll
      for (int i = 0; i < kRowVector; ++i) x.x[i] += g.x[i];
    }
    x.Store(dx + row * a.width + at);
  }
  if (is_inside) d_weight.Store(partials + blockIdx.x * a.width + at);
}

// A block takes as many columns as a warp has lanes; a warp every kSumWarps-th row.
__global__ void AddPartialsKernel(const float* partials, int64_t count, int64_t width,
                                  float* sums) {
  __shared__ float shared[kSumWarps][kWarp];
  const unsigned warp = threadIdx.x / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  const int64_t column = blockIdx.x * kWarp + lane;
  float sum = 0;
  if (column < width) {
#pragma unroll 8
    for (int64_t row = warp; row < count; row += kSumWarps) sum += partials[row * width + column];
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= width) return;
  for (unsigned other = 1; other < kSumWarps; ++other) sum += shared[other][lane];
  sums[column] = sum;
}

template <typename T>
__global__ void GateForwardKernel(TrainingGate a, T* y) {
  const int64_t vectors = a.width / kRowVector;
  const int64_t at = (blockIdx.y * blockDim.x + threadIdx.x) * kRowVector;
  if (at >= vectors * kRowVector) return;
  const T* const row = static_cast<const T*>(a.gate_up) + blockIdx.x * 2 * a.width;
  RowVector gate;
  RowVector up;
  gate.Load(row + at);
  up.Load(row + a.width + at);
#pragma unroll
  for (int i = 0; i < kRowVector; ++i) gate.x[i] = Silu(gate.x[i]) * up.x[i];
  gate.Store(y + blockIdx.x * a.width + at);
}

// d gate = g up s (1 + gate (1 - s)), d up = g gate s, with s = sigmoid(gate).
template <typename T>
__global__ void GateBackwardKernel(TrainingGate a, const T* dy, T* d_gate_up) {
  const int64_t at = (blockIdx.y * blockDim.x + threadIdx.x) * kRowVector;
  if (at >= a.width) return;
  const int64_t row = blockIdx.x * 2 * a.width;
  const T* const from = static_cast<const T*>(a.gate_up) + row;
  RowVector gate;
  RowVector up;
  RowVector g;
  gate.Load(from + at);
  up.Load(from + a.width + at);
  g.Load(dy + blockIdx.x * a.width + at);
#pragma unroll
  for (int i = 0; i < kRowVector; ++i) {
    const float share = 1.0F / (1.0F + __expf(-gate.x[i]));
    const float silu = gate.x[i] * share;
    gate.x[i] = g.x[i] * up.x[i] * (share + silu * (1.0F - share));
    up.x[i] = g.x[i] * silu;
  }
  gate.Store(d_gate_up + row + at);
  up.Store(d_gate_up + row + a.width + at);
}

dim3 GateGrid(const TrainingGate& gate) {
  const int64_t per_block = kGateThreads * kRowVector;
  return {static_cast<unsigned>(gate.num_rows),
          static_cast<unsigned>((gate.width + per_block - 1) / per_block)};
}

}  // namespace

int64_t NumPartials(int64_t num_rows) {
  return std::clamp<int64_t>(num_rows, 1, kMaxPartials);
}

void NormForward(const TrainingNorm& norm, void* y, cudaStream_t stream) {
  const auto num_rows = static_cast<unsigned>(norm.num_rows);
  if (norm.element == Element::kHalf) {
    NormForwardKernel<<<num_rows, NormThreads(norm.width), 0, stream>>>(norm,
                                                                        static_cast<Half*>(y));
  } else {
    NormForwardKernel<<<num_rows, NormThreads(norm.width), 0, stream>>>(norm,
                                                                        static_cast<float*>(y));
  }
}

void NormBackward(const TrainingNorm& norm, const void* dy, const void* addend, void* dx,
                  float* d_weight_partials, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(NumPartials(norm.num_rows));
  const unsigned threads = NormThreads(norm.width);
  if (norm.element == Element::kHalf) {
    NormBackwardKernel<<<blocks, threads, 0, stream>>>(norm, static_cast<const Half*>(dy),
                                                       static_cast<const Half*>(addend),
                                                       static_cast<Half*>(dx), d_weight_partials);
  } else {
    NormBackwardKernel<<<blocks, threads, 0, stream>>>(norm, static_cast<const float*>(dy),
                                                       static_cast<const float*>(addend),
                                                       static_cast<float*>(dx), d_weight_partials);
  }
}

void AddPartials(const float* partials, int64_t count, int64_t width, float* sums,
                 cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((width + kWarp - 1) / kWarp);
  AddPartialsKernel<<<blocks, kSumWarps * kWarp, 0, stream>>>(partials, count, width, sums);
}

void GateForward(const TrainingGate& gate, void* y, cudaStream_t stream) {
  if (gate.element == Element::kHalf) {
    GateForwardKernel<<<GateGrid(gate), kGateThreads, 0, stream>>>(gate, static_cast<Half*>(y));
  } else {
    GateForwardKernel<<<GateGrid(gate), kGateThreads, 0, stream>>>(gate, static_cast<float*>(y));
  }
}

void GateBackward(const TrainingGate& gate, const void* dy, void* d_gate_up, cudaStream_t stream) {
  if (gate.element == Element::kHalf) {
    GateBackwardKernel<<<GateGrid(gate), kGateThreads, 0, stream>>>(
        gate, static_cast<const Half*>(dy), static_cast<Half*>(d_gate_up));
  } else {
    GateBackwardKernel<<<GateGrid(gate), kGateThreads, 0, stream>>>(
        gate, static_cast<const float*>(dy), static_cast<float*>(d_gate_up));
  }
}

}  // namespace pace::cuda
