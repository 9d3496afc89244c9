#include "tools/control_groups.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

TEST(ControlGroupsTest, FindsTheFirstHierarchy) {
  const OwnGroups own =
      FindOwnGroups("8:pids:/\n4:memory:/jobs/7\n3:cpu,cpuacct:/\n0::/\n",
                    "30 29 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                    "31 29 0:27 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n");
  EXPECT_EQ(own.memory, "/sys/fs/cgroup/memory/jobs/7");
  EXPECT_EQ(own.processes, "/sys/fs/cgroup/pids");
  EXPECT_EQ(own.unified, "");
}

TEST(ControlGroupsTest, FindsTheSecondHierarchy) {
  const OwnGroups own =
      FindOwnGroups("0::/user.slice/a\n",
                    "30 29 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  EXPECT_EQ(own.unified, "/sys/fs/cgroup/user.slice/a");
  EXPECT_EQ(own.memory, "");
}

TEST(ControlGroupsTest, AMountOfPartOfAHierarchyIsNotTaken) {
  const OwnGroups own =
      FindOwnGroups("4:memory:/docker/abc\n",
                    "30 29 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  EXPECT_EQ(own.memory, "");
}

TEST(ControlGroupsTest, NonsenseIsNoGroup) {
  for (const char* text : {"", "\n\n", "::", "a:b", "4:memory"}) {
    const OwnGroups own = FindOwnGroups(text, text);
    EXPECT_EQ(own.memory + own.processes + own.unified, "") << text;
  }
}

}  // namespace
}  // namespace pace
