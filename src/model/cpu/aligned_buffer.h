// AlignedBuffer: zeroed memory for weights, activations and the cache.
//
// Aligned to cache lines; large ones to huge pages, which are asked for.
// Thread-safety: as a plain array.
#ifndef PACE_MODEL_CPU_ALIGNED_BUFFER_H_
#define PACE_MODEL_CPU_ALIGNED_BUFFER_H_

#include <cstdint>
#include <memory>

#include "core/status.h"

namespace pace {

constexpr int64_t RoundUp(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Fails when the machine has no such memory.
  static Result<AlignedBuffer> Allocate(int64_t num_bytes);

  int64_t num_bytes() const { return data_ == nullptr ? 0 : data_.get_deleter().num_bytes; }
  template <typename T>
  T* As() {
    return static_cast<T*>(data_.get());
  }
  template <typename T>
  const T* As() const {
    return static_cast<const T*>(data_.get());
  }

 private:
  struct Release {
    Release() : Release(0, 0) {}
    Release(int64_t bytes, int64_t mapped) : num_bytes(bytes), num_mapped(mapped) {}
    void operator()(void* data) const;
    int64_t num_bytes;
    int64_t num_mapped;  // 0: from the heap
  };
  AlignedBuffer(void* data, Release release) : data_(data, release) {}

  std::unique_ptr<void, Release> data_;
};

}  // namespace pace

#endif  // PACE_MODEL_CPU_ALIGNED_BUFFER_H_
