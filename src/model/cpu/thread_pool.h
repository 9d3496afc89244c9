// ThreadPool: the caller and some threads of its own, for short parallel loops.
//
// Every thread has a range of consecutive tasks and takes them one by one; who
// is through helps the others. So neighbouring tasks mostly share a thread and
// its caches, and a thread that the system has taken off its core delays
// nothing but the task it holds. Results must not depend on who runs what.
// Between loops the threads spin for some tens of microseconds, then sleep.
//
//   ThreadPool threads(2);
//   threads.ParallelFor(num_panels, [&](int64_t panel, int64_t worker) { ... });
//
// Thread-safety: one ParallelFor at a time, and not from within a task.
#ifndef PACE_MODEL_CPU_THREAD_POOL_H_
#define PACE_MODEL_CPU_THREAD_POOL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace pace {

class ThreadPool {
 public:
  // REQUIRES: num_threads >= 1, the caller included
  explicit ThreadPool(int64_t num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int64_t num_threads() const { return static_cast<int64_t>(tickets_.size()); }

  // Runs fn(task, worker) for every task in [0, num_tasks); returns when all are
  // done. `worker` < num_threads() names the thread, for its scratch memory.
  // A single task runs on the caller at once.
  template <typename Fn>
  void ParallelFor(int64_t num_tasks, const Fn& fn) {
    const Function call = [](const void* context, int64_t task, int64_t worker) {
      (*static_cast<const Fn*>(context))(task, worker);
    };
    Run(num_tasks, call, &fn);
  }

 private:
  using Function = void (*)(const void* context, int64_t task, int64_t worker);

  // The loop's number in the upper half, how many tasks of the range are left in
  // the lower: a task is taken only from the loop whose fields were read.
  struct alignas(64) Ticket {
    std::atomic<uint64_t> value{0};
  };

  void Run(int64_t num_tasks, Function function, const void* context);
  // Takes and runs tasks of the present loop until none is left.
  void Work(int64_t worker);
  void DrainRange(int64_t range, int64_t worker);
  void Serve(int64_t worker);
  // Waits until the worker's loop number differs from `seen` or the threads ends.
  void AwaitLoop(int64_t worker, uint32_t seen);
  // The end of a worker's range.
  int64_t RangeEnd(int64_t range, int64_t num_tasks) const {
    return num_tasks * (range + 1) / num_threads();
  }

  std::vector<Ticket> tickets_;  // one per thread
  std::atomic<Function> function_{nullptr};
  std::atomic<const void*> context_{nullptr};
  std::atomic<int64_t> num_tasks_{0};
  alignas(64) std::atomic<int64_t> num_done_{0};
  alignas(64) std::atomic<int64_t> num_asleep_{0};
  std::atomic<bool> ends_{false};
  Mutex mutex_;
  CondVar wake_;
  std::vector<std::thread> threads_;
};

// A loop over rows of activations, shared among the threads if it is long enough.
// Calls fn(row, worker) for every row. `row_work` is about the number of
// elements that a row touches.
template <typename Fn>
void ForRows(ThreadPool& threads, int64_t num_rows, int64_t row_work, const Fn& fn) {
  constexpr int64_t kWorthATask = 16'384;
  const int64_t rows_per_task = std::max<int64_t>(1, kWorthATask / std::max<int64_t>(1, row_work));
  const int64_t num_tasks = (num_rows + rows_per_task - 1) / rows_per_task;
  const auto run = [&](int64_t task, int64_t worker) {
    const int64_t end = std::min(num_rows, (task + 1) * rows_per_task);
    for (int64_t row = task * rows_per_task; row < end; ++row) fn(row, worker);
  };
  threads.ParallelFor(num_tasks, run);
}

}  // namespace pace

#endif  // PACE_MODEL_CPU_THREAD_POOL_H_
