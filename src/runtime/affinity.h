// Which core a thread runs on. Threads inherit it from the one that makes them.
// Thread-safety: about the calling thread.
#ifndef PACE_RUNTIME_AFFINITY_H_
#define PACE_RUNTIME_AFFINITY_H_

#include <sched.h>

#include <cstdint>
#include <vector>

namespace pace {

// Cores that the process may use, in order.
std::vector<int> UsableCores();

// Keeps the calling thread on some of the usable cores, and puts it back.
class ScopedAffinity {
 public:
  // Cores [first, first + count) of the usable ones, modulo their number. With
  // enabled = false nothing happens.
  ScopedAffinity(bool enabled, int64_t first, int64_t count);
  ~ScopedAffinity();
  ScopedAffinity(const ScopedAffinity&) = delete;
  ScopedAffinity& operator=(const ScopedAffinity&) = delete;

 private:
  bool changed_ = false;
  cpu_set_t before_;
};

}  // namespace pace

#endif  // PACE_RUNTIME_AFFINITY_H_
