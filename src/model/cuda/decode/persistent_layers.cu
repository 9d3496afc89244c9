// The kernel of PersistentLayers and its launch. One block per processor: warps that compute
// (layers_consumer.cuh), and one that streams (weight_ring.cuh). See persistent_layers.h.
#include "model/cuda/decode/layers_consumer.cuh"
#include "model/cuda/decode/persistent_layers.h"
#include "model/cuda/decode/ring_attention.cuh"
#include "model/cuda/decode/ring_products.cuh"
#include "model/cuda/decode/weight_ring.cuh"

namespace pace::cuda {
namespace {

constexpr int kThreads = (kLayersWarps + 1) * static_cast<int>(kWarp);

template <int kRows, int kDim, bool kFloat8>
__global__ void __launch_bounds__(kThreads, 1)
    LayersKernel(const __grid_constant__ PersistentArguments a) {
  extern __shared__ __align__(128) unsigned char shared[];
  if (threadIdx.x == 0) {
    const WeightRing ring(a.plan, shared);
    for (int slot = 0; slot < a.plan.num_slots; ++slot) {
      InitBarrier(ring.full + 8 * static_cast<uint32_t>(slot), 1);
      InitBarrier(ring.empty + 8 * static_cast<uint32_t>(slot), kLayersWarps * kArrivalsOfWarp);
    }
    FenceBarriers();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  ComputeRanges(a, shared);
  __syncthreads();
  WaitForPredecessor();
  if (threadIdx.x / kWarp == kLayersWarps) {
    LayersProducer<kRows, kDim>(a, shared).Run();
  } else {
    LayersConsumer<kRows, kDim, kFloat8>(a, shared).Run();
  }
}

using LayersFunction = void (*)(PersistentArguments);

template <bool kFloat8>
LayersFunction FunctionOf(const LayersShape& shape) {
  const bool is_wide = shape.head_dim == 128;
  if (shape.num_rows == 1) {
    return is_wide ? LayersKernel<1, 128, kFloat8> : LayersKernel<1, 64, kFloat8>;
  }
  return is_wide ? LayersKernel<2, 128, kFloat8> : LayersKernel<2, 64, kFloat8>;
}

LayersFunction FunctionFor(const LayersShape& shape) {
  return shape.weight_bytes == 1 ? FunctionOf<true>(shape) : FunctionOf<false>(shape);
}

}  // namespace

int64_t PersistentExchangeBytes(const LayersShape& shape, const LayersPlan& plan) {
  return Exchange(shape, plan, nullptr).num_bytes;
}

std::optional<LayersPlan> PlanLayersHere(const LayersShape& shape) {
  int processors = 0;
  int shared_bytes = 0;
  int is_cooperative = 0;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return std::nullopt;
  (void)cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  (void)cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  (void)cudaDeviceGetAttribute(&is_cooperative, cudaDevAttrCooperativeLaunch, device);
  if (is_cooperative == 0) return std::nullopt;
  const std::optional<LayersPlan> plan = PlanLayers(shape, processors, shared_bytes);
  if (!plan) return std::nullopt;
  // All blocks must be resident at once.
  const LayersFunction kernel = FunctionFor(shape);
  int resident = 0;
  const bool fits =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           plan->shared_bytes) == cudaSuccess &&
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &resident, kernel, kThreads, static_cast<size_t>(plan->shared_bytes)) == cudaSuccess;
  if (!fits) (void)cudaGetLastError();
  return fits && resident > 0 ? plan : std::nullopt;
}

void PersistentLayers(const PersistentArguments& a, cudaStream_t stream) {
  const LayersFunction kernel = FunctionFor(a.shape);
  (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             a.plan.shared_bytes);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned>(a.plan.num_blocks);
  config.blockDim = kThreads;
  config.dynamicSmemBytes = static_cast<size_t>(a.plan.shared_bytes);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  // Errors stay with the runtime until the pass asks for them.
  (void)cudaLaunchKernelEx(&config, kernel, a);
}

}  // namespace pace::cuda
