// Mutex with thread-safety annotations.
//
// libstdc++'s std::mutex carries none, so clang cannot check it; this wraps it
// once. Members that a mutex protects say so with PACE_GUARDED_BY, and the
// clang build (-Wthread-safety -Werror) proves it.
#ifndef PACE_CORE_MUTEX_H_
#define PACE_CORE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define PACE_ANNOTATION_(x) __attribute__((x))
#else
#define PACE_ANNOTATION_(x)
#endif

#define PACE_CAPABILITY(x) PACE_ANNOTATION_(capability(x))
#define PACE_SCOPED_CAPABILITY PACE_ANNOTATION_(scoped_lockable)
#define PACE_GUARDED_BY(x) PACE_ANNOTATION_(guarded_by(x))
#define PACE_PT_GUARDED_BY(x) PACE_ANNOTATION_(pt_guarded_by(x))
#define PACE_REQUIRES(...) PACE_ANNOTATION_(requires_capability(__VA_ARGS__))
#define PACE_ACQUIRE(...) PACE_ANNOTATION_(acquire_capability(__VA_ARGS__))
#define PACE_RELEASE(...) PACE_ANNOTATION_(release_capability(__VA_ARGS__))
#define PACE_EXCLUDES(...) PACE_ANNOTATION_(locks_excluded(__VA_ARGS__))

namespace pace {

class PACE_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() PACE_ACQUIRE() { mutex_.lock(); }
  void Unlock() PACE_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class PACE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) PACE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() PACE_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits always carry a deadline: no wait in this system is without one.
class CondVar {
 public:
  // Returns false when the deadline passed. May wake early: test the condition.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline)
      PACE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const auto status = condition_.wait_until(lock, deadline);
    lock.release();
    return status == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace pace

#endif  // PACE_CORE_MUTEX_H_
