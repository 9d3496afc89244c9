#include "sandbox/isolated_process.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/concat.h"
#include "sandbox/root_plan.h"

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

// ChildSetup: the steps of an isolated process between clone and exec.
//
// The constructor may allocate. RunInChild runs in a copy of a multi-threaded process in which a
// lock may be held forever, so it only makes plain system calls. It never returns: it executes
// the program, or writes errno and the step's name to the report pipe and exits.
// The identity of the process outside of its namespaces.
struct ChildIdentity {
  bool as_root = false;    // the caller may make namespaces without a user namespace
  std::string user_map{};  // for its user namespace, where it needs one
  std::string group_map{};
};
ChildIdentity PlanChildIdentity(bool isolated);

class ChildSetup {
 public:
  // Borrows all three.
  ChildSetup(int report, const IsolatedProcessOptions& options, const ChildIdentity& identity)
      : report_(report), options_(options), identity_(identity) {}

  [[noreturn]] void RunInChild(char* const* arguments, char* const* environment);

 private:
  [[noreturn]] void GiveUp(const char* step) const;
  void Require(bool done, const char* step) const {
    if (!done) GiveUp(step);
  }
  void WriteFile(const char* path, const char* text, size_t size, int flags,
                 const char* step) const;
  void MapUser() const;
  void EnterRoot() const;
  void Do(const RootStep& step) const;
  void BecomeNobody() const;
  void MoveDescriptors();
  void ResetSignals() const;

  int report_;  // moves when descriptors are renumbered
  const IsolatedProcessOptions& options_;
  const ChildIdentity& identity_;
};

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

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// What the child wrote before it gave up: an errno and the step; empty when it
// became the program.
struct ChildReport {
  int error = 0;
  char step[252] = {};
};

std::string ReadReport(int descriptor, ChildReport& report) {
  size_t have = 0;
  while (have < sizeof(report)) {
    const ssize_t count =
        ::read(descriptor, reinterpret_cast<char*>(&report) + have, sizeof(report) - have);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    have += static_cast<size_t>(count);
  }
  report.step[sizeof(report.step) - 1] = '\0';
  return have > sizeof(int) ? report.step : "";
}

void WaitFor(pid_t pid) {
  int ignored = 0;
  while (::waitpid(pid, &ignored, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

unsigned long IsolationFlags(bool as_root) {
  const unsigned long flags =
      CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  return as_root ? flags : flags | CLONE_NEWUSER;
}

Result<IsolatedProcess> IsolatedProcess::Start(const IsolatedProcessOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);

  // Everything that allocates happens before the clone: after it, in a copy of
  // a process with many threads, only plain system calls are safe.
  const std::vector<char*> arguments = Pointers(options.arguments);
  const std::vector<char*> environment = Pointers(options.environment);
  const ChildIdentity identity = PlanChildIdentity(options.isolated);
  ChildSetup setup(writing.get(), options, identity);

  const unsigned long flags = SIGCHLD | (options.isolated ? IsolationFlags(identity.as_root) : 0UL);
  // Signals wait until the child has its own handlers: none of ours may run in it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const long pid = ::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) setup.RunInChild(arguments.data(), environment.data());
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return ErrnoStatus("new namespaces", error);

  writing.Close();
  IsolatedProcess process(static_cast<pid_t>(pid));
  ChildReport report;
  const std::string step = ReadReport(reading.get(), report);
  if (!step.empty()) return ErrnoStatus(step, report.error);
  return process;
}

IsolatedProcess::~IsolatedProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  WaitFor(pid_);
}

}  // namespace pace
