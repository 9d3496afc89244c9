// ToolThreads: calls of the tool, several at once, each answered on a thread.
//
//   ToolThreads threads(executor, settings.tools.max_programs);
//   threads.Ask(call, [](Result<ToolReply> reply) { ... });   // on one of the threads
//
// Threads are started on demand, up to the bound or to what the machine allows; further
// calls wait. If no thread can be started, the call gets a failed reply on the caller's
// thread. The destructor cancels the calls in flight, which get failed replies, and drops
// the others.
// Thread-safety: Ask from one thread; the destructor from that one.
#ifndef PACE_EXECUTION_TOOL_THREADS_H_
#define PACE_EXECUTION_TOOL_THREADS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/file_descriptor.h"
#include "core/mutex.h"
#include "core/status.h"
#include "execution/tool_executor.h"

namespace pace {

class ToolThreads {
 public:
  using Done = std::function<void(Result<ToolReply>)>;

  ToolThreads(std::shared_ptr<ToolExecutor> executor, int64_t max_threads);
  ~ToolThreads();
  ToolThreads(const ToolThreads&) = delete;
  ToolThreads& operator=(const ToolThreads&) = delete;

  void Ask(ToolRequest call, Done done) PACE_EXCLUDES(mutex_);

 private:
  struct Question {
    ToolRequest call;
    Done done;
  };

  void Loop() PACE_EXCLUDES(mutex_);
  void FailAll(const Status& why) PACE_EXCLUDES(mutex_);

  const std::shared_ptr<ToolExecutor> executor_;
  const int64_t max_threads_;
  FileDescriptor stop_;  // an eventfd, readable once destruction begins
  Mutex mutex_;
  CondVar posted_;
  std::deque<Question> waiting_ PACE_GUARDED_BY(mutex_);
  int64_t num_idle_ PACE_GUARDED_BY(mutex_) = 0;
  bool stopping_ PACE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace pace

#endif  // PACE_EXECUTION_TOOL_THREADS_H_
