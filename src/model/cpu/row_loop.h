// ForRows: a loop over rows of activations, shared out when it is worth it.
#ifndef PACE_MODEL_CPU_ROW_LOOP_H_
#define PACE_MODEL_CPU_ROW_LOOP_H_

#include <algorithm>
#include <cstdint>

#include "model/cpu/thread_pool.h"

namespace pace {

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

#endif  // PACE_MODEL_CPU_ROW_LOOP_H_
