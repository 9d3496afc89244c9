// Mailbox: messages from any thread to the one that reads them, in order.
// Thread-safety: Put from any thread; Take from one.
#ifndef PACE_RUNTIME_MAILBOX_H_
#define PACE_RUNTIME_MAILBOX_H_

#include <chrono>
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

}  // namespace pace

#endif  // PACE_RUNTIME_MAILBOX_H_
