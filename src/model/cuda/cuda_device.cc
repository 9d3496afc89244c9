// What there is to know about the GPU.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "model/cuda/decode/cuda_decoder.h"
#include "model/cuda/device_memory.h"

namespace pace {
namespace {

using cuda::DeviceMemory;
using cuda::ToStatus;

std::string VersionText(int version) {
  return Concat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

bool HasCuda() {
  return true;
}

Result<CudaDevice> FindCudaDevice() {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    return Unavailable("device = cuda: no GPU: ",
                       found == cudaSuccess ? "none was found" : cudaGetErrorString(found));
  }
  cudaDeviceProp properties{};
  PACE_RETURN_IF_ERROR(ToStatus(cudaGetDeviceProperties(&properties, 0), "device"));
  size_t free = 0;
  size_t total = 0;
  PACE_RETURN_IF_ERROR(ToStatus(cudaMemGetInfo(&free, &total), "device"));
  int driver = 0;
  int runtime = 0;
  PACE_RETURN_IF_ERROR(ToStatus(cudaDriverGetVersion(&driver), "device"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaRuntimeGetVersion(&runtime), "device"));
  return CudaDevice{.name = properties.name,
                    .driver = VersionText(driver),
                    .runtime = VersionText(runtime),
                    .cublas = Concat(cublasLtGetVersion()),
                    .capability = 10 * properties.major + properties.minor,
                    .num_processors = properties.multiProcessorCount,
                    .memory_bytes = static_cast<int64_t>(total),
                    .free_bytes = static_cast<int64_t>(free)};
}

Result<double> MeasureCudaBandwidth() {
  constexpr int64_t kBytes = int64_t{2} << 30;
  constexpr int kRounds = 10;
  PACE_ASSIGN_OR_RETURN(const DeviceMemory from, DeviceMemory::Allocate(kBytes, "bandwidth"));
  PACE_ASSIGN_OR_RETURN(const DeviceMemory to, DeviceMemory::Allocate(kBytes, "bandwidth"));
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventCreate(&begin), "bandwidth"));
  PACE_RETURN_IF_ERROR(ToStatus(cudaEventCreate(&end), "bandwidth"));
  cudaError_t error = cudaSuccess;
  for (int round = 0; round < kRounds + 2; ++round) {
    if (round == 2) error = cudaEventRecord(begin);
    if (error == cudaSuccess) {
      error = cudaMemcpyAsync(to.at(), from.at(), kBytes, cudaMemcpyDeviceToDevice);
    }
  }
  if (error == cudaSuccess) error = cudaEventRecord(end);
  if (error == cudaSuccess) error = cudaEventSynchronize(end);
  float milliseconds = 0;
  if (error == cudaSuccess) error = cudaEventElapsedTime(&milliseconds, begin, end);
  (void)cudaEventDestroy(begin);
  (void)cudaEventDestroy(end);
  PACE_RETURN_IF_ERROR(ToStatus(error, "bandwidth"));
  return 2.0 * kRounds * static_cast<double>(kBytes) / (1e-3 * static_cast<double>(milliseconds));
}

Status CopyFromCuda(std::span<const std::byte> from, std::span<std::byte> to) {
  return cuda::ToStatus(cudaMemcpy(to.data(), from.data(), from.size(), cudaMemcpyDeviceToHost),
                        "weights");
}

}  // namespace pace
