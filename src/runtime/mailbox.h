// Mailbox: messages from any thread to the one that reads them, in order; and TaskThread, which
// runs tasks from its mailbox.
// Thread-safety: Put from any thread; Take from one.
#ifndef PACE_RUNTIME_MAILBOX_H_
#define PACE_RUNTIME_MAILBOX_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace pace {

template <typename Message>
class Mailbox {
 public:
  void Put(Message message) PACE_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      messages_.push_back(std::move(message));
    }
    arrived_.NotifyOne();
  }

  // Takes all messages; waits for the first until the deadline.
  std::vector<Message> Take(std::chrono::steady_clock::time_point deadline) PACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (messages_.empty()) {
      if (!arrived_.WaitUntil(mutex_, deadline)) break;
    }
    return std::exchange(messages_, {});
  }

 private:
  Mutex mutex_;
  CondVar arrived_;
  std::vector<Message> messages_ PACE_GUARDED_BY(mutex_);
};

// TaskThread: one thread that runs tasks in order.
//
// The destructor finishes the running task and drops the others.
// Thread-safety: Post from any thread.
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

#endif  // PACE_RUNTIME_MAILBOX_H_
