#include "sandbox/isolated_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "sandbox/child_setup.h"

namespace pace {
namespace {

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
