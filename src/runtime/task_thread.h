// TaskThread: one thread that runs tasks in order.
//
// The destructor finishes the running task and drops the others.
// Thread-safety: Post from any thread.
#ifndef PACE_RUNTIME_TASK_THREAD_H_
#define PACE_RUNTIME_TASK_THREAD_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "runtime/mailbox.h"

namespace pace {

class TaskThread {
 public:
  using Task = std::function<void()>;

  TaskThread() : thread_([this] { Loop(); }) {}
  ~TaskThread() {
    stopping_ = true;
    tasks_.Put([] {});
    thread_.join();
  }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  void Post(Task task) { tasks_.Put(std::move(task)); }

 private:
  void Loop() {
    while (!stopping_) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      for (const Task& task : tasks_.Take(deadline)) {
        if (stopping_) return;
        task();
      }
    }
  }

  Mailbox<Task> tasks_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace pace

#endif  // PACE_RUNTIME_TASK_THREAD_H_
