#include "model/cpu/thread_pool.h"

#include <chrono>
#include <limits>

#include "core/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pace {
namespace {

constexpr uint64_t kLeftMask = 0xFFFFFFFF;
// A pause takes some 40 ns: threads spin for about 50 us before they sleep.
constexpr int kSpins = 1200;
// The caller spins this often for the last tasks before it offers its core.
constexpr int kSpinsBeforeYield = 4000;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // `yield` does nothing on most cores
#else
  std::this_thread::yield();
#endif
}

uint32_t LoopOf(uint64_t ticket) {
  return static_cast<uint32_t>(ticket >> 32);
}

}  // namespace

ThreadPool::ThreadPool(int64_t num_threads) : tickets_(static_cast<size_t>(num_threads)) {
  PACE_CHECK(num_threads >= 1, "num_threads = ", num_threads);
  for (int64_t worker = 1; worker < num_threads; ++worker) {
    threads_.emplace_back([this, worker] { Serve(worker); });
  }
}

ThreadPool::~ThreadPool() {
  ends_ = true;
  {
    const MutexLock lock(mutex_);
    wake_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Run(int64_t num_tasks, Function function, const void* context) {
  PACE_CHECK(num_tasks >= 0 && num_tasks <= std::numeric_limits<int32_t>::max(),
             "num_tasks = ", num_tasks);
  if (threads_.empty() || num_tasks <= 1) {
    for (int64_t task = 0; task < num_tasks; ++task) function(context, task, 0);
    return;
  }
  function_.store(function, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  num_tasks_.store(num_tasks, std::memory_order_relaxed);
  num_done_.store(0, std::memory_order_relaxed);
  const uint64_t loop = uint64_t{LoopOf(tickets_[0].value.load(std::memory_order_relaxed))} + 1;
  int64_t begin = 0;
  for (int64_t range = 0; range < num_threads(); ++range) {
    const int64_t end = RangeEnd(range, num_tasks);
    // Pairs with AwaitLoop: either the sleeper sees this loop, or we see it asleep.
    tickets_[static_cast<size_t>(range)].value.store(
        (loop << 32) | static_cast<uint64_t>(end - begin), std::memory_order_seq_cst);
    begin = end;
  }
  if (num_asleep_.load(std::memory_order_seq_cst) > 0) {
    const MutexLock lock(mutex_);
    wake_.NotifyAll();
  }
  Work(0);
  for (int spins = 0; num_done_.load(std::memory_order_acquire) < num_tasks; ++spins) {
    if (spins < kSpinsBeforeYield) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::Work(int64_t worker) {
  for (int64_t i = 0; i < num_threads(); ++i) DrainRange((worker + i) % num_threads(), worker);
}

void ThreadPool::DrainRange(int64_t range, int64_t worker) {
  std::atomic<uint64_t>& left = tickets_[static_cast<size_t>(range)].value;
  uint64_t ticket = left.load(std::memory_order_acquire);
  while ((ticket & kLeftMask) > 0) {
    const Function function = function_.load(std::memory_order_relaxed);
    const void* const context = context_.load(std::memory_order_relaxed);
    const int64_t num_tasks = num_tasks_.load(std::memory_order_relaxed);
    // Success proves that the loop is not over, so the fields were its own.
    if (!left.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      continue;
    }
    const auto from_end = static_cast<int64_t>(ticket & kLeftMask);
    function(context, RangeEnd(range, num_tasks) - from_end, worker);
    num_done_.fetch_add(1, std::memory_order_release);
    ticket = left.load(std::memory_order_acquire);
  }
}

void ThreadPool::AwaitLoop(int64_t worker, uint32_t seen) {
  const std::atomic<uint64_t>& ticket = tickets_[static_cast<size_t>(worker)].value;
  const auto changed = [&] {
    return ends_.load() || LoopOf(ticket.load(std::memory_order_seq_cst)) != seen;
  };
  for (int spins = 0; spins < kSpins; ++spins) {
    if (changed()) return;
    Pause();
  }
  const MutexLock lock(mutex_);
  num_asleep_.fetch_add(1, std::memory_order_seq_cst);
  while (!changed()) {
    wake_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::seconds(10));
  }
  num_asleep_.fetch_sub(1, std::memory_order_seq_cst);
}

void ThreadPool::Serve(int64_t worker) {
  const std::atomic<uint64_t>& ticket = tickets_[static_cast<size_t>(worker)].value;
  uint32_t seen = 0;
  while (true) {
    AwaitLoop(worker, seen);
    if (ends_.load()) return;
    seen = LoopOf(ticket.load(std::memory_order_acquire));
    Work(worker);
  }
}

}  // namespace pace
