#include "nccl/stay_on_cpu.h"

namespace pace {

StayOnCpu::StayOnCpu() {
  const int cpu = sched_getcpu();
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  if (sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  stays_ = sched_setaffinity(0, sizeof(one), &one) == 0;
}

StayOnCpu::~StayOnCpu() {
  if (stays_) static_cast<void>(sched_setaffinity(0, sizeof(before_), &before_));
}

}  // namespace pace
