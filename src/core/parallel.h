// Threads: independent pieces of work on several, and one that may fail to start.
#ifndef PACE_CORE_PARALLEL_H_
#define PACE_CORE_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "core/status.h"

namespace pace {

// Calls work(0) ... work(count - 1), each once, on up to num_threads threads
// (0 = one per core), and returns when all have returned. `work` must be safe
// to call from several threads at once.
inline void ForEachInParallel(size_t count, int64_t num_threads,
                              const std::function<void(size_t)>& work) {
  if (num_threads <= 0) num_threads = std::max(1U, std::thread::hardware_concurrency());
  const size_t num_workers = std::min(count, static_cast<size_t>(num_threads));
  std::atomic<size_t> next = 0;
  const auto drain = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  for (size_t t = 1; t < num_workers; ++t) threads.emplace_back(drain);
  drain();
  for (std::thread& thread : threads) thread.join();
}

// A thread, or why there is none: std::thread throws where the machine is out of threads or
// memory, which for a server is an ordinary day.
template <typename Body>
Result<std::thread> StartThread(Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::exception& error) {
    return Unavailable("no thread can be started: ", error.what());
  }
}

}  // namespace pace

#endif  // PACE_CORE_PARALLEL_H_
