#include "sandbox/child_setup.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "core/concat.h"
#include "sandbox/isolated_process.h"

namespace pace {
namespace {

constexpr uid_t kNobody = 65534;
constexpr int kFirstGiven = 3;
constexpr int kMaxGiven = 8;
constexpr int kParked = 200;

// As in linux/mount.h, which clashes with sys/mount.h in some releases.
struct MountAttributes {
  uint64_t set = 0;
  uint64_t clear = 0;
  uint64_t propagation = 0;
  uint64_t user_namespace = 0;
};
constexpr uint64_t kReadOnly = 1;
constexpr uint64_t kNoSetUid = 2;
constexpr uint64_t kNoDevices = 4;
constexpr unsigned kRecursive = 0x8000;

bool SetMount(const char* path, uint64_t attributes, unsigned flags) {
  MountAttributes wanted;
  wanted.set = attributes;
  return ::syscall(442 /* mount_setattr */, AT_FDCWD, path, flags, &wanted, sizeof(wanted)) == 0;
}

bool CloseRange(unsigned first, unsigned last) {
  return first > last || ::syscall(436 /* close_range */, first, last, 0) == 0;
}

}  // namespace

ChildIdentity PlanChildIdentity(bool isolated) {
  ChildIdentity identity;
  identity.as_root = isolated && ::geteuid() == 0;
  identity.user_map = Concat("1000 ", ::geteuid(), " 1");
  identity.group_map = Concat("1000 ", ::getegid(), " 1");
  return identity;
}

void ChildSetup::GiveUp(const char* step) const {
  const int error = errno;
  [[maybe_unused]] ssize_t ignored = ::write(report_, &error, sizeof(error));
  ignored = ::write(report_, step, std::strlen(step));
  ::_exit(127);
}

void ChildSetup::WriteFile(const char* path, const char* text, size_t size, int flags,
                           const char* step) const {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC | flags, 0444);
  Require(file >= 0, step);
  size_t written = 0;
  while (written < size) {
    const ssize_t count = ::write(file, text + written, size - written);
    Require(count > 0, step);
    written += static_cast<size_t>(count);
  }
  ::close(file);
}

void ChildSetup::MapUser() const {
  const char* step = "user namespace: mapping of the user";
  WriteFile("/proc/self/setgroups", "deny", 4, 0, step);
  WriteFile("/proc/self/uid_map", identity_.user_map.data(), identity_.user_map.size(), 0, step);
  WriteFile("/proc/self/gid_map", identity_.group_map.data(), identity_.group_map.size(), 0, step);
}

void ChildSetup::Do(const RootStep& step) const {
  const char* source = step.source.c_str();
  const char* target = step.target.c_str();
  switch (step.kind) {
    case RootStepKind::kDirectory:
      return Require(::mkdir(target, 0755) == 0 || errno == EEXIST, target);
    case RootStepKind::kFile:
      return WriteFile(target, source, step.source.size(), O_CREAT | O_EXCL, target);
    case RootStepKind::kLink:
      return Require(::symlink(source, target) == 0, target);
    case RootStepKind::kBind:
      // Recursive, as a user namespace may not uncover what a mount hides.
      Require(::mount(source, target, nullptr, MS_BIND | MS_REC, nullptr) == 0, target);
      return Require(SetMount(target, kReadOnly | kNoSetUid | kNoDevices, kRecursive), target);
    case RootStepKind::kBindDevice:
      Require(::mount(source, target, nullptr, MS_BIND, nullptr) == 0, target);
      return Require(SetMount(target, kReadOnly | kNoSetUid, 0), target);
    case RootStepKind::kProc:
      if (::mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0) return;
      return Require(::mount(source, target, nullptr, MS_BIND | MS_REC, nullptr) == 0, target);
  }
}

void ChildSetup::EnterRoot() const {
  Require(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0,
          "mount namespace: making it private");
  // The new root grows in a file system in memory. Swapping it with the old one
  // first lets every folder of the machine be reached, its own mount included.
  const char* mount_point = "/tmp";
  Require(::mount("tmpfs", mount_point, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m") == 0,
          "mount of a file system in memory");
  Require(::chdir(mount_point) == 0 && ::mkdir("old", 0755) == 0 && ::mkdir("new", 0755) == 0,
          "folders for the new root");
  Require(::syscall(SYS_pivot_root, ".", "old") == 0 && ::chdir("/") == 0, "pivot_root");
  Require(::mount("tmpfs", "/new", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m") == 0,
          "mount of a file system in memory");
  ::umask(022);
  for (const RootStep& step : options_.root) Do(step);
  Require(SetMount("/new", kReadOnly | kNoSetUid | kNoDevices, 0), "making the root read-only");
  Require(::umount2("/old", MNT_DETACH) == 0, "leaving the old root");
  Require(::chdir("/new") == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0 &&
              ::umount2(".", MNT_DETACH) == 0 && ::chdir("/") == 0,
          "entering the new root");
}

void ChildSetup::BecomeNobody() const {
  const char* step = "becoming an unprivileged user";
  Require(::syscall(SYS_setgroups, 0, nullptr) == 0, step);
  Require(::syscall(SYS_setresgid, kNobody, kNobody, kNobody) == 0, step);
  Require(::syscall(SYS_setresuid, kNobody, kNobody, kNobody) == 0, step);
}

void ChildSetup::MoveDescriptors() {
  const char* step = "placing descriptors";
  // First all out of the way of their final numbers.
  int parked[kMaxGiven] = {};
  int count = 0;
  for (const int given : options_.descriptors) {
    parked[count] = ::fcntl(given, F_DUPFD, kParked);
    Require(parked[count++] >= 0, step);
  }
  const int report = ::fcntl(report_, F_DUPFD_CLOEXEC, kParked);
  Require(report >= 0, step);
  report_ = report;
  const int null = ::open("/dev/null", O_RDWR);
  Require(null >= 0, step);
  for (int number = 0; number < kFirstGiven; ++number) Require(::dup2(null, number) >= 0, step);
  for (int index = 0; index < count; ++index) {
    Require(::dup2(parked[index], kFirstGiven + index) >= 0, step);
  }
  Require(
      CloseRange(static_cast<unsigned>(kFirstGiven + count), static_cast<unsigned>(report - 1)) &&
          CloseRange(static_cast<unsigned>(report + 1), ~0U),
      step);
}

void ChildSetup::ResetSignals() const {
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &plain, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void ChildSetup::RunInChild(char* const* arguments, char* const* environment) {
  ResetSignals();
  if (options_.isolated) {
    if (!identity_.as_root) MapUser();
    EnterRoot();
    Require(::sethostname("sandbox", 7) == 0, "host name");
    if (identity_.as_root) BecomeNobody();
    Require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  }
  MoveDescriptors();
  ::execve(arguments[0], arguments, environment);
  GiveUp(arguments[0]);
}

}  // namespace pace
