#include "nccl/stay_on_cpu.h"

#include <gtest/gtest.h>

#include <thread>

namespace pace {
namespace {

cpu_set_t Allowed() {
  cpu_set_t allowed;
  EXPECT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  return allowed;
}

TEST(StayOnCpuTest, TheThreadAndThoseItStartsStayUntilItEnds) {
  const cpu_set_t before = Allowed();
  {
    const StayOnCpu here;
    const cpu_set_t inside = Allowed();
    EXPECT_EQ(CPU_COUNT(&inside), 1);
    EXPECT_TRUE(CPU_ISSET(sched_getcpu(), &inside));
    cpu_set_t of_started;
    std::thread([&] { of_started = Allowed(); }).join();
    EXPECT_TRUE(CPU_EQUAL(&inside, &of_started));
    const StayOnCpu again;
  }
  const cpu_set_t after = Allowed();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(StayOnCpuTest, OtherThreadsAreNotTouched) {
  const cpu_set_t before = Allowed();
  std::thread([] { const StayOnCpu here; }).join();
  const cpu_set_t after = Allowed();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace pace
