// Memory of the GPU and pinned memory of the host, and CUDA's errors as ours.
// Thread-safety: values; the calls are thread-safe.
#ifndef PACE_MODEL_CUDA_DEVICE_MEMORY_H_
#define PACE_MODEL_CUDA_DEVICE_MEMORY_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace pace::cuda {

// Ok, or "WHAT: CUDA's words".
Status ToStatus(cudaError_t error, std::string_view what);

// Zeroed. Freed with its owner.
class DeviceMemory {
 public:
  static Result<DeviceMemory> Allocate(int64_t num_bytes, std::string_view what);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(num_bytes_, other.num_bytes_);
    return *this;
  }
  ~DeviceMemory();

  char* at() const { return static_cast<char*>(at_); }
  int64_t num_bytes() const { return num_bytes_; }
  template <typename T>
  T* As(int64_t offset = 0) const {
    return reinterpret_cast<T*>(at() + offset);
  }

 private:
  void* at_ = nullptr;
  int64_t num_bytes_ = 0;
};

class PinnedMemory {
 public:
  static Result<PinnedMemory> Allocate(int64_t num_bytes);
  PinnedMemory() = default;
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(num_bytes_, other.num_bytes_);
    return *this;
  }
  ~PinnedMemory();

  int64_t num_bytes() const { return num_bytes_; }
  template <typename T>
  T* As(int64_t offset = 0) const {
    return reinterpret_cast<T*>(static_cast<char*>(at_) + offset);
  }

 private:
  void* at_ = nullptr;
  int64_t num_bytes_ = 0;
};

// Hands out parts of one memory: first all are asked for, then it is allocated.
class MemoryPlan {
 public:
  // The offset of a part, 256 bytes aligned.
  int64_t Add(int64_t num_bytes) {
    const int64_t offset = num_bytes_;
    num_bytes_ += (num_bytes + 255) / 256 * 256;
    return offset;
  }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  int64_t num_bytes_ = 0;
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DEVICE_MEMORY_H_
