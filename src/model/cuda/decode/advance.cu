// From the sampled tokens of a pass to the rows of the next one.
#include "model/cuda/decode/logits_kernels.h"
#include "model/cuda/launch.cuh"

namespace pace::cuda {
namespace {

constexpr unsigned kThreads = 128;

__global__ void AdvanceKernel(AdvanceArguments a) {
  const int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= a.num_rows || a.sources[row] == kOwnToken) return;
  const int32_t token = a.results[a.sources[row]].token;
  bool stops = false;
  for (int64_t i = 0; i < a.num_stops; ++i) stops = stops || a.stops[i] == token;
  a.tokens[row] = token;
  if (!stops) return;
  a.positions[row] = 0;
  a.tables[row] = 0;
}

}  // namespace

void Advance(const AdvanceArguments& a, cudaStream_t stream) {
  // Not by Launch, as Embed.
  const auto num_blocks = static_cast<unsigned>((a.num_rows + kThreads - 1) / kThreads);
  AdvanceKernel<<<num_blocks, kThreads, 0, stream>>>(a);
}

}  // namespace pace::cuda
