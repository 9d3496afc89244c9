#include "model/cuda/device_memory.h"

namespace pace::cuda {

Status ToStatus(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return Status::Ok();
  return Unavailable(what, ": ", cudaGetErrorString(error));
}

Result<DeviceMemory> DeviceMemory::Allocate(int64_t num_bytes, std::string_view what) {
  size_t free = 0;
  size_t total = 0;
  PACE_RETURN_IF_ERROR(ToStatus(cudaMemGetInfo(&free, &total), what));
  DeviceMemory memory;
  const auto size = static_cast<size_t>(num_bytes > 0 ? num_bytes : 1);
  const cudaError_t error = cudaMalloc(&memory.at_, size);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return Unavailable(what, ": needs ", num_bytes, " bytes of the GPU's memory; ", free, " of ",
                       total, " are free");
  }
  PACE_RETURN_IF_ERROR(ToStatus(error, what));
  memory.num_bytes_ = num_bytes;
  // Our streams do not wait for the default one: zeros must be there before use.
  PACE_RETURN_IF_ERROR(ToStatus(cudaMemsetAsync(memory.at_, 0, size, nullptr), what));
  PACE_RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(nullptr), what));
  return memory;
}

DeviceMemory::~DeviceMemory() {
  if (at_ != nullptr) (void)cudaFree(at_);
}

Result<PinnedMemory> PinnedMemory::Allocate(int64_t num_bytes) {
  PinnedMemory memory;
  const auto size = static_cast<size_t>(num_bytes > 0 ? num_bytes : 1);
  PACE_RETURN_IF_ERROR(ToStatus(cudaMallocHost(&memory.at_, size), "pinned memory"));
  memory.num_bytes_ = num_bytes;
  return memory;
}

PinnedMemory::~PinnedMemory() {
  if (at_ != nullptr) (void)cudaFreeHost(at_);
}

}  // namespace pace::cuda
