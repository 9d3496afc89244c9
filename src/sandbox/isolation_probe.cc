#include "sandbox/isolation_probe.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "sandbox/syscall_filter.h"

namespace pace {
namespace {

// Runs `attempt` in a child cloned with these flags; errno of what failed.
template <typename Attempt>
int TryInChild(unsigned long flags, Attempt attempt) {
  const long pid = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) return errno;
  if (pid == 0) ::_exit(attempt());
  int status = 0;
  while (::waitpid(static_cast<pid_t>(pid), &status, 0) < 0) {
    if (errno != EINTR) return errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EFAULT;
}

int TryNamespace(unsigned long flag) {
  // A user namespace gives the right to make the others, as it will for programs.
  return TryInChild(CLONE_NEWUSER | flag, [] { return 0; });
}

int TrySeccomp() {
  const std::vector<sock_filter> filter = ProgramSyscallFilter();
  if (filter.empty()) return ENOSYS;
  sock_fprog program{static_cast<unsigned short>(filter.size()),
                     const_cast<sock_filter*>(filter.data())};
  return TryInChild(0, [&program] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : errno;
  });
}

int TryMountSetattr() {
  // A call that exists complains of its arguments.
  if (::syscall(442 /* mount_setattr */, -1, "", 0, nullptr, 0) == 0) return 0;
  return errno == ENOSYS || errno == EPERM ? errno : 0;
}

}  // namespace

std::vector<IsolationPiece> ProbeIsolation() {
  return {{"user namespaces", TryNamespace(0)},
          {"mount namespaces", TryNamespace(CLONE_NEWNS)},
          {"pid namespaces", TryNamespace(CLONE_NEWPID)},
          {"network namespaces", TryNamespace(CLONE_NEWNET)},
          {"ipc namespaces", TryNamespace(CLONE_NEWIPC)},
          {"uts namespaces", TryNamespace(CLONE_NEWUTS)},
          {"cgroup namespaces", TryNamespace(CLONE_NEWCGROUP)},
          {"read-only mounts (mount_setattr, Linux 5.12)", TryMountSetattr()},
          {"seccomp filters", TrySeccomp()}};
}

Status RequireIsolation(const std::vector<IsolationPiece>& pieces) {
  for (const IsolationPiece& piece : pieces) {
    if (piece.error == 0) continue;
    return Unavailable("sandbox: no isolation on this machine: ", piece.name, ": ",
                       std::strerror(piece.error),
                       " (allow them, or set tools.sandbox to unsafe for programs you trust)");
  }
  return Status::Ok();
}

}  // namespace pace
