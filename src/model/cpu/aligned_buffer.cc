#include "model/cpu/aligned_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/check.h"

namespace pace {
namespace {

constexpr int64_t kCacheLine = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;

// Maps one huge page more than needed, gives back what lies around the aligned part.
void* MapAligned(int64_t num_bytes) {
  const auto total = static_cast<size_t>(num_bytes + kHugePage);
  void* const mapped =
      mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const start = static_cast<char*>(mapped);
  const auto address = reinterpret_cast<intptr_t>(start);
  char* const aligned = start + (RoundUp(address, kHugePage) - address);
  char* const end = aligned + num_bytes;
  if (aligned > start) munmap(start, static_cast<size_t>(aligned - start));
  if (start + total > end) munmap(end, static_cast<size_t>(start + total - end));
  // Only a wish: without huge pages it is slower, not wrong.
  madvise(aligned, static_cast<size_t>(num_bytes), MADV_HUGEPAGE);
  return aligned;
}

}  // namespace

Result<AlignedBuffer> AlignedBuffer::Allocate(int64_t num_bytes) {
  PACE_CHECK(num_bytes >= 0, "num_bytes = ", num_bytes);
  const auto refused = [num_bytes] {
    return Unavailable("no memory for ", num_bytes, " bytes: take fewer blocks or a smaller model");
  };
  if (num_bytes > std::numeric_limits<int64_t>::max() / 2) return refused();
  if (num_bytes < kHugePage) {
    const auto size = static_cast<size_t>(RoundUp(std::max<int64_t>(num_bytes, 1), kCacheLine));
    void* const data = std::aligned_alloc(kCacheLine, size);
    if (data == nullptr) return refused();
    std::memset(data, 0, size);
    return AlignedBuffer(data, Release(num_bytes, 0));
  }
  const int64_t num_mapped = RoundUp(num_bytes, kHugePage);
  void* const data = MapAligned(num_mapped);
  if (data == nullptr) return refused();
  return AlignedBuffer(data, Release(num_bytes, num_mapped));
}

void AlignedBuffer::Release::operator()(void* data) const {
  if (num_mapped > 0) {
    munmap(data, static_cast<size_t>(num_mapped));
  } else {
    std::free(data);
  }
}

}  // namespace pace
