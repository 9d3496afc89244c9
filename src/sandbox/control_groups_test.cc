#include "sandbox/control_groups.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/concat.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

TEST(ControlGroupsTest, FindsTheFirstHierarchy) {
  const OwnGroups own =
      FindOwnGroups("8:pids:/\n4:memory:/jobs/7\n3:cpu,cpuacct:/\n0::/\n",
                    "30 29 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                    "31 29 0:27 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n");
  EXPECT_EQ(own.memory, "/sys/fs/cgroup/memory/jobs/7");
  EXPECT_EQ(own.processes, "/sys/fs/cgroup/pids");
  EXPECT_EQ(own.processor, "") << "it is not mounted";
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

// A tree of files in a folder that does as the kernel does: a new group has its files,
// and in v2 a group with processes of its own hands nothing down.
class FakeGroupFiles final : public GroupFiles {
 public:
  FakeGroupFiles(const std::string& name, bool unified)
      : root_(Concat(::testing::TempDir(), "pace-groups-", ::getpid(), "-", name)),
        unified_(unified) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~FakeGroupFiles() override { fs::remove_all(root_); }

  std::string root() const { return root_; }
  std::string At(const std::string& path) { return Read(root_ + "/" + path); }
  void Put(const std::string& path, const std::string& text) {
    std::ofstream(root_ + "/" + path) << text;
  }
  // The caller's own group.
  void PutOwn(const std::string& name, const std::string& members) {
    EXPECT_TRUE(Make(root_ + "/" + name));
    Put(name + "/cgroup.procs", members);
  }

  bool Make(const std::string& folder) override {
    if (read_only || !fs::create_directory(folder)) return false;
    for (const char* name : {"cgroup.procs", "pids.max", "memory.max", "memory.swap.max",
                             "memory.limit_in_bytes", "memory.events", "memory.oom_control",
                             "cgroup.subtree_control", "cpu.shares", "cpu.weight"}) {
      std::ofstream(folder + "/" + name) << "";
    }
    return true;
  }
  void Remove(const std::string& folder) override { fs::remove_all(folder); }
  std::vector<std::string> FoldersIn(const std::string& folder) override {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) names.push_back(entry.path().filename());
    }
    return names;
  }
  FileDescriptor Open(const std::string& path, int flags) override {
    if (unified_ && flags == O_WRONLY && path.ends_with("/cgroup.subtree_control")) {
      const std::string group = path.substr(0, path.rfind('/'));
      if (!Read(group + "/cgroup.procs").empty()) return FileDescriptor();
      std::ofstream(path) << "cpu memory pids\n";
      return FileDescriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    }
    // The kernel moves a process that is written; here it leaves its old group.
    if (unified_ && flags == O_WRONLY && path.ends_with("-caller/cgroup.procs")) {
      std::ofstream(path.substr(0, path.rfind('/')) + "/../cgroup.procs") << "";
    }
    return FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC));
  }

  bool read_only = false;

 private:
  const std::string root_;
  const bool unified_;
};

std::string OnlyFolder(FakeGroupFiles& files, const std::string& of, const std::string& end = "") {
  for (const std::string& name : files.FoldersIn(files.root() + "/" + of)) {
    if (name.ends_with(end)) return of + "/" + name;
  }
  return "";
}

TEST(ControlGroupsTest, TheFirstHierarchyBoundsEverySlot) {
  FakeGroupFiles files("v1", false);
  for (const char* controller : {"memory", "pids", "cpu"}) files.PutOwn(controller, "");
  {
    const OwnGroups own{.memory = files.root() + "/memory",
                        .processes = files.root() + "/pids",
                        .processor = files.root() + "/cpu"};
    const std::unique_ptr<ControlGroups> groups = ControlGroups::Make(own, files, 3, 64);
    ASSERT_NE(groups, nullptr);
    EXPECT_TRUE(groups->bounds_processor());
    EXPECT_FALSE(groups->is_unified());
    EXPECT_EQ(groups->Memberships(2).size(), 3U);
    EXPECT_TRUE(groups->SetMemory(2, 1000));
    EXPECT_EQ(files.At(OnlyFolder(files, "memory") + "/2/memory.limit_in_bytes"),
              std::to_string(1000 + ControlGroups::kExtraMemory));
    EXPECT_EQ(files.At(OnlyFolder(files, "pids") + "/1/pids.max"), "67");
    EXPECT_EQ(files.At(OnlyFolder(files, "cpu") + "/cpu.shares"), "1024");
  }
  EXPECT_EQ(OnlyFolder(files, "memory") + OnlyFolder(files, "cpu"), "") << "groups are left";
}

TEST(ControlGroupsTest, TheFirstHierarchyDoesWithoutSharesOfTheProcessor) {
  FakeGroupFiles files("v1-no-cpu", false);
  for (const char* controller : {"memory", "pids"}) files.PutOwn(controller, "");
  const OwnGroups own{.memory = files.root() + "/memory", .processes = files.root() + "/pids"};
  const std::unique_ptr<ControlGroups> groups = ControlGroups::Make(own, files, 1, 64);
  ASSERT_NE(groups, nullptr);
  EXPECT_FALSE(groups->bounds_processor());
}

TEST(ControlGroupsTest, TheSecondHierarchyMovesACallerThatIsAlone) {
  FakeGroupFiles files("v2", true);
  files.PutOwn("own", std::to_string(::getpid()) + "\n");
  const OwnGroups own{.unified = files.root() + "/own"};
  const std::unique_ptr<ControlGroups> groups = ControlGroups::Make(own, files, 2, 64);
  ASSERT_NE(groups, nullptr);
  EXPECT_TRUE(groups->is_unified());
  EXPECT_TRUE(groups->bounds_processor());
  EXPECT_EQ(groups->Memberships(1).size(), 1U);
  const std::string leaf = OnlyFolder(files, "own", "-caller");
  EXPECT_EQ(files.At(leaf + "/cgroup.procs"), std::to_string(::getpid()));
  EXPECT_TRUE(groups->SetMemory(1, 5000));
  std::string limits;
  for (const std::string& name : files.FoldersIn(files.root() + "/own")) {
    limits += files.At("own/" + name + "/1/memory.max");
  }
  EXPECT_EQ(limits, std::to_string(5000 + ControlGroups::kExtraMemory));
  // Another sandbox of the same caller, which is in its leaf now.
  const OwnGroups moved{.unified = files.root() + "/" + leaf};
  EXPECT_NE(ControlGroups::Make(moved, files, 1, 64), nullptr);
}

TEST(ControlGroupsTest, TheSecondHierarchyLeavesACrowdedGroupAlone) {
  FakeGroupFiles files("v2-crowd", true);
  files.PutOwn("own", Concat("1\n", ::getpid(), "\n"));
  EXPECT_EQ(ControlGroups::Make({.unified = files.root() + "/own"}, files, 1, 64), nullptr);
  EXPECT_EQ(OnlyFolder(files, "own"), "") << "groups are left";
}

TEST(ControlGroupsTest, WhatCannotBeWrittenIsNoGroup) {
  FakeGroupFiles files("read-only", true);
  files.PutOwn("own", "");
  files.read_only = true;
  EXPECT_EQ(ControlGroups::Make({.unified = files.root() + "/own"}, files, 1, 64), nullptr);
  EXPECT_EQ(ControlGroups::Make({}, files, 1, 64), nullptr);
}

TEST(ControlGroupsTest, GroupsOfTheDeadAreRemoved) {
  FakeGroupFiles files("orphans", true);
  files.PutOwn("own", "");
  // No process has this number: it is beyond what kernels give.
  for (const char* name :
       {"own/pace-sandbox-999999999-0", "own/pace-sandbox-999999999-0/0", "own/other"}) {
    EXPECT_TRUE(files.Make(files.root() + "/" + name));
  }
  EXPECT_NE(ControlGroups::Make({.unified = files.root() + "/own"}, files, 1, 64), nullptr);
  EXPECT_EQ(files.FoldersIn(files.root() + "/own"), std::vector<std::string>{"other"});
}

}  // namespace
}  // namespace pace
