#include "sandbox/isolation_probe.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "core/file_descriptor.h"
#include "sandbox/sandbox.h"

namespace pace {
namespace {

TEST(IsolationProbeTest, NamesTheFirstMissingPiece) {
  EXPECT_TRUE(RequireIsolation({{"a", 0}, {"b", 0}}).ok());
  const Status status = RequireIsolation({{"a", 0}, {"user namespaces", EPERM}, {"c", ENOSYS}});
  EXPECT_EQ(status.message(),
            "sandbox: no isolation on this machine: user namespaces: Operation not permitted "
            "(allow them, or set tools.sandbox to unsafe for programs you trust)");
}

TEST(IsolationProbeTest, LooksForEveryNamespace) {
  std::string names;
  for (const IsolationPiece& piece : ProbeIsolation()) names += piece.name + ";";
  for (const char* piece : {"user", "mount", "pid", "network", "ipc", "seccomp"}) {
    EXPECT_NE(names.find(piece), std::string::npos) << piece;
  }
}

// As in a container without rights: cloning with any of `flags` is refused.
void RefuseClone(uint32_t flags) {
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_K | BPF_JEQ, 0, 3, SYS_clone},
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args[0])},
      {BPF_JMP | BPF_K | BPF_JSET, 0, 1, flags},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{std::size(filter), filter};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

// What Start says in a child that is held so; "started" where it does not mind.
std::string StartWithout(uint32_t flags, const SandboxOptions& options) {
  Result<DescriptorPair> pipe = MakePipe();
  if (!pipe.ok()) return pipe.status().message();
  const pid_t child = ::fork();
  if (child == 0) {
    RefuseClone(flags);
    std::string said;
    {
      const Result<std::unique_ptr<Sandbox>> sandbox = Sandbox::Start(options);
      said = sandbox.ok() ? "started" : sandbox.status().message();
    }
    [[maybe_unused]] const ssize_t ignored = ::write(pipe->second.get(), said.data(), said.size());
    ::_exit(0);
  }
  int ignored = 0;
  ::waitpid(child, &ignored, 0);
  char buffer[1024];
  const ssize_t count = ::read(pipe->first.get(), buffer, sizeof(buffer));
  return count > 0 ? std::string(buffer, static_cast<size_t>(count)) : "";
}

TEST(IsolationRefusalTest, IsOneLineThatNamesThePiece) {
  const std::string said = StartWithout(CLONE_NEWUSER, {});
  EXPECT_TRUE(
      said.starts_with("sandbox: no isolation on this machine: user namespaces: "
                       "Operation not permitted"))
      << said;
  EXPECT_EQ(said.find('\n'), std::string::npos);
}

TEST(IsolationRefusalTest, OnePieceIsEnough) {
  if (!RequireIsolation(ProbeIsolation()).ok()) {
    GTEST_SKIP() << "SKIPPED: no isolation here at all, so no single piece is missing";
  }
  EXPECT_NE(StartWithout(CLONE_NEWNET, {}).find("network namespaces"), std::string::npos);
  EXPECT_NE(StartWithout(CLONE_NEWPID, {}).find("pid namespaces"), std::string::npos);
}

TEST(IsolationRefusalTest, UnsafeHasToBeSaid) {
  SandboxOptions options;
  options.mode = SandboxMode::kUnsafe;
  options.warm_modules.clear();
  EXPECT_EQ(StartWithout(CLONE_NEWUSER, options), "started");
}

}  // namespace
}  // namespace pace
