// ToolThreads: calls of the tool, several at once, each answered on a thread.
//
// Threads are made as calls come, up to the bound; further calls wait. Destroying it
// cancels the calls under way and drops the others.
// Thread-safety: Post from one thread; the destructor from that one.
#ifndef PACE_RUNTIME_TOOL_THREADS_H_
#define PACE_RUNTIME_TOOL_THREADS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "core/sync.h"
#include "tools/file_descriptor.h"
#include "tools/program.h"

namespace pace {

class ToolThreads {
 public:
  // Asked to answer a call; the cancellation tells it to give up.
  using Work = std::function<void(const Cancellation&)>;

  explicit ToolThreads(int64_t max_threads);
  ~ToolThreads();
  ToolThreads(const ToolThreads&) = delete;
  ToolThreads& operator=(const ToolThreads&) = delete;

  void Post(Work work) PACE_EXCLUDES(mutex_);

 private:
  void Loop() PACE_EXCLUDES(mutex_);

  const int64_t max_threads_;
  FileDescriptor stop_;  // an eventfd, readable once destruction begins
  Mutex mutex_;
  CondVar posted_;
  std::deque<Work> waiting_ PACE_GUARDED_BY(mutex_);
  int64_t num_idle_ PACE_GUARDED_BY(mutex_) = 0;
  bool stopping_ PACE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace pace

#endif  // PACE_RUNTIME_TOOL_THREADS_H_
