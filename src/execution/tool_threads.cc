#include "execution/tool_threads.h"

#include <sys/eventfd.h>

#include <chrono>
#include <utility>

#include "core/check.h"
#include "core/parallel.h"

namespace pace {
namespace {

// Waits look again this often; nothing depends on it.
constexpr std::chrono::seconds kPatience{1};

}  // namespace

ToolThreads::ToolThreads(std::shared_ptr<ToolExecutor> executor, int64_t max_threads)
    : executor_(std::move(executor)), max_threads_(max_threads), stop_(eventfd(0, EFD_CLOEXEC)) {
  PACE_CHECK(stop_.get() >= 0, "no eventfd");
}

ToolThreads::~ToolThreads() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    posted_.NotifyAll();
  }
  PACE_CHECK(eventfd_write(stop_.get(), 1) == 0, "the stop event is lost");
  for (std::thread& thread : threads_) thread.join();
}

void ToolThreads::Ask(ToolRequest call, Done done) {
  bool needs_thread = false;
  {
    const MutexLock lock(mutex_);
    waiting_.push_back({std::move(call), std::move(done)});
    needs_thread = static_cast<int64_t>(waiting_.size()) > num_idle_;
    posted_.NotifyOne();
  }
  if (!needs_thread || static_cast<int64_t>(threads_.size()) >= max_threads_) return;
  Result<std::thread> thread = StartThread([this] { Loop(); });
  if (thread.ok()) {
    threads_.push_back(std::move(thread).value());
  } else if (threads_.empty()) {
    FailAll(thread.status());
  }
}

void ToolThreads::FailAll(const Status& why) {
  std::deque<Question> lost;
  {
    const MutexLock lock(mutex_);
    lost.swap(waiting_);
  }
  for (const Question& question : lost) question.done(executor_->FailLostCall(why));
}

void ToolThreads::Loop() {
  while (true) {
    Question question;
    {
      const MutexLock lock(mutex_);
      ++num_idle_;
      while (waiting_.empty() && !stopping_) {
        posted_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kPatience);
      }
      --num_idle_;
      if (stopping_) return;
      question = std::move(waiting_.front());
      waiting_.pop_front();
    }
    question.done(executor_->AnswerOrFail(question.call, {.descriptor = stop_.get()}));
  }
}

}  // namespace pace
