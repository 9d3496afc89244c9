#include "model/torch/recycling_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace pace {
namespace {

// g++ defines a macro; clang has a feature.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitizesAddresses = true;
#elif defined(__has_feature)
constexpr bool kSanitizesAddresses = __has_feature(address_sanitizer);
#else
constexpr bool kSanitizesAddresses = false;
#endif

constexpr size_t kSmallestKept = size_t{64} << 10;

// In front of every tensor, of a cache line so that the tensor stays aligned.
struct alignas(64) Header {
  size_t block_bytes;
};

class Allocator final : public c10::Allocator {
 public:
  static Allocator& Get() {
    static auto* const allocator = new Allocator;  // LibTorch may free after main
    return *allocator;
  }

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &Free, c10::Device(c10::DeviceType::CPU)};
    void* const data = Take(RecycledBlockBytes(bytes)) + 1;
    c10::profiledCPUMemoryReporter().New(data, bytes);
    return {data, data, &Free, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &Free; }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  RecycledMemory Measure() {
    const MutexLock lock(mutex_);
    return memory_;
  }

 private:
  static void Free(void* data) {
    if (data == nullptr) return;
    c10::profiledCPUMemoryReporter().Delete(data);
    Get().Return(static_cast<Header*>(data) - 1);
  }

  Header* Take(size_t bytes) {
    std::vector<Header*> freed;
    if (bytes >= kSmallestKept) {
      const MutexLock lock(mutex_);
      const auto found = waiting_.lower_bound(bytes);
      if (found != waiting_.end() && found->first <= bytes + bytes / 2) {
        Header* const block = found->second;
        memory_.waiting -= found->first;
        Use(found->first);
        waiting_.erase(found);
        return block;
      }
      ++memory_.num_fresh;
      Use(bytes);
      freed = Shrink();
    }
    for (Header* const block : freed) c10::free_cpu(block);
    auto* const block = static_cast<Header*>(c10::alloc_cpu(sizeof(Header) + bytes));
    block->block_bytes = bytes;
    return block;
  }

  void Return(Header* block) {
    const size_t bytes = block->block_bytes;
    if (bytes < kSmallestKept) return c10::free_cpu(block);
    std::vector<Header*> freed;
    {
      const MutexLock lock(mutex_);
      memory_.in_use -= bytes;
      memory_.waiting += bytes;
      waiting_.emplace(bytes, block);
      freed = Shrink();
    }
    for (Header* const beyond : freed) c10::free_cpu(beyond);
  }

  void Use(size_t bytes) PACE_REQUIRES(mutex_) {
    memory_.in_use += bytes;
    memory_.most_in_use = std::max(memory_.most_in_use, memory_.in_use);
  }

  // Blocks beyond the limit, the smallest first, taken out for the caller to free.
  std::vector<Header*> Shrink() PACE_REQUIRES(mutex_) {
    std::vector<Header*> freed;
    const size_t most = memory_.most_in_use + memory_.most_in_use / 4;
    while (!waiting_.empty() && memory_.in_use + memory_.waiting > most) {
      const auto smallest = waiting_.begin();
      freed.push_back(smallest->second);
      memory_.waiting -= smallest->first;
      waiting_.erase(smallest);
    }
    return freed;
  }

  Mutex mutex_;
  std::multimap<size_t, Header*> waiting_ PACE_GUARDED_BY(mutex_);  // by the size of the block
  RecycledMemory memory_ PACE_GUARDED_BY(mutex_);
};

}  // namespace

void RecycleTensorMemory() {
  if (kSanitizesAddresses) return;
  static std::once_flag once;
  std::call_once(once, [] { c10::SetCPUAllocator(&Allocator::Get(), /*priority=*/1); });
}

size_t RecycledBlockBytes(size_t bytes) {
  if (bytes < kSmallestKept) return bytes;
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

RecycledMemory MeasureRecycledMemory() {
  return Allocator::Get().Measure();
}

}  // namespace pace
