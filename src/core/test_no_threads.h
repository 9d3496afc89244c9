// For tests: while one lives, no thread can be started, as on a machine that is out of
// them.
#ifndef PACE_CORE_TEST_NO_THREADS_H_
#define PACE_CORE_TEST_NO_THREADS_H_

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace pace {

class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_getattr_default_np(&huge);
    // No address space holds such a stack.
    EXPECT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 60), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoNewThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace pace

#endif  // PACE_CORE_TEST_NO_THREADS_H_
