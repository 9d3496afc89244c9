#include "runtime/affinity.h"

namespace pace {

std::vector<int> UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

ScopedAffinity::ScopedAffinity(bool enabled, int64_t first, int64_t count) {
  CPU_ZERO(&before_);
  if (!enabled || sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  const std::vector<int> cores = UsableCores();
  if (cores.empty()) return;
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (int64_t i = first; i < first + count; ++i) {
    CPU_SET(cores[static_cast<size_t>(i) % cores.size()], &wanted);
  }
  changed_ = sched_setaffinity(0, sizeof(wanted), &wanted) == 0;
}

ScopedAffinity::~ScopedAffinity() {
  if (changed_) sched_setaffinity(0, sizeof(before_), &before_);
}

}  // namespace pace
