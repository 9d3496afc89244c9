#include "sandbox/syscall_filter.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace pace {
namespace {

// What the kernel does with a filter, one instruction after the other.
uint32_t Evaluate(const std::vector<sock_filter>& filter, const seccomp_data& data) {
  uint32_t word = 0;
  for (size_t at = 0; at < filter.size(); ++at) {
    const sock_filter& step = filter[at];
    const auto jump = [&](bool condition) { at += condition ? step.jt : step.jf; };
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&word, reinterpret_cast<const char*>(&data) + step.k, sizeof(word));
        break;
      case BPF_JMP | BPF_K | BPF_JEQ:
        jump(word == step.k);
        break;
      case BPF_JMP | BPF_K | BPF_JGE:
        jump(word >= step.k);
        break;
      case BPF_JMP | BPF_K | BPF_JSET:
        jump((word & step.k) != 0);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        word &= step.k;
        break;
      case BPF_RET | BPF_K:
        return step.k;
      default:
        ADD_FAILURE() << "instruction " << step.code;
        return 0;
    }
  }
  ADD_FAILURE() << "the filter has no end";
  return 0;
}

uint32_t Verdict(long number, uint64_t argument = 0, uint64_t second = 0, uint64_t third = 0) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
#if defined(__x86_64__)
  data.arch = AUDIT_ARCH_X86_64;
#else
  data.arch = AUDIT_ARCH_AARCH64;
#endif
  data.args[0] = argument;
  data.args[1] = second;
  data.args[2] = third;
  return Evaluate(ProgramSyscallFilter(), data);
}

TEST(SyscallFilterTest, LetsOrdinaryCallsThrough) {
  for (const int number :
       {SYS_read, SYS_write, SYS_openat, SYS_mmap, SYS_brk, SYS_execve, SYS_wait4, SYS_futex,
        SYS_exit_group, SYS_getrandom, SYS_socketpair, SYS_pipe2, SYS_rt_sigaction, SYS_dup3}) {
    EXPECT_EQ(Verdict(number), SECCOMP_RET_ALLOW) << number;
  }
}

TEST(SyscallFilterTest, RefusesWhatIsolationRestsOn) {
  for (const int number :
       {SYS_mount, SYS_umount2, SYS_unshare, SYS_setns, SYS_ptrace, SYS_socket, SYS_bpf, SYS_keyctl,
        SYS_mknodat, SYS_open_by_handle_at, SYS_memfd_create, SYS_shmget, 429, 442}) {
    EXPECT_EQ(Verdict(number), SECCOMP_RET_ERRNO | EPERM) << number;
  }
}

TEST(SyscallFilterTest, RefusesCloneWithNamespacesAlone) {
  EXPECT_EQ(Verdict(SYS_clone, SIGCHLD), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Verdict(SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND), SECCOMP_RET_ALLOW);
  for (const uint32_t flag : {0x10000000U, 0x00020000U, 0x20000000U, 0x40000000U}) {
    EXPECT_EQ(Verdict(SYS_clone, flag | uint64_t{SIGCHLD}), SECCOMP_RET_ERRNO | EPERM) << flag;
  }
  EXPECT_EQ(Verdict(435), SECCOMP_RET_ERRNO | ENOSYS) << "clone3 hides its flags";
}

TEST(SyscallFilterTest, TheRuleOfCloneBindsCloneAlone) {
  EXPECT_EQ(Verdict(SYS_read, CLONE_NEWUSER), SECCOMP_RET_ALLOW);
}

TEST(SyscallFilterTest, ACopyOfMemoryWhoseParentSleepsIsRefused) {
  EXPECT_EQ(Verdict(SYS_clone, CLONE_VFORK | SIGCHLD), SECCOMP_RET_ERRNO | EPERM);
  EXPECT_EQ(Verdict(SYS_clone, CLONE_VFORK | CLONE_FS | SIGCHLD), SECCOMP_RET_ERRNO | EPERM);
  EXPECT_EQ(Verdict(SYS_clone, CLONE_VFORK | CLONE_VM | SIGCHLD), SECCOMP_RET_ALLOW);
}

TEST(SyscallFilterTest, LimitsAndSchedulingAreTheCallersOwn) {
  for (const int number : {SYS_prlimit64, SYS_sched_setscheduler, SYS_sched_setparam,
                           SYS_sched_setattr, SYS_sched_setaffinity}) {
    EXPECT_EQ(Verdict(number, 0), SECCOMP_RET_ALLOW) << number;
    EXPECT_EQ(Verdict(number, 1), SECCOMP_RET_ERRNO | EPERM) << number;
    EXPECT_EQ(Verdict(number, 0xffffffff), SECCOMP_RET_ERRNO | EPERM) << number;
  }
  EXPECT_EQ(Verdict(SYS_ioprio_set, 1, 1), SECCOMP_RET_ERRNO | EPERM);
}

TEST(SyscallFilterTest, PriorityIsSetForTheCallerOrItsGroup) {
  EXPECT_EQ(Verdict(SYS_setpriority, 0, 0, 5), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Verdict(SYS_setpriority, 1, 0, 5), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Verdict(SYS_setpriority, 0, 1, 5), SECCOMP_RET_ERRNO | EPERM);
  EXPECT_EQ(Verdict(SYS_setpriority, 1, 7, 5), SECCOMP_RET_ERRNO | EPERM);
  EXPECT_EQ(Verdict(SYS_setpriority, 2, 0, 5), SECCOMP_RET_ERRNO | EPERM) << "all of the user";
}

TEST(SyscallFilterTest, BuffersOfSocketsKeepTheirSizes) {
  for (const uint64_t option : {7U, 8U, 32U, 33U}) {
    EXPECT_EQ(Verdict(SYS_setsockopt, 3, 1, option), SECCOMP_RET_ERRNO | EPERM) << option;
    EXPECT_EQ(Verdict(SYS_setsockopt, 3, 6, option), SECCOMP_RET_ALLOW) << option;
  }
  EXPECT_EQ(Verdict(SYS_setsockopt, 3, 1, 2), SECCOMP_RET_ALLOW);
}

TEST(SyscallFilterTest, UnknownCallsDoNotExist) {
  EXPECT_EQ(Verdict(451), SECCOMP_RET_ERRNO | ENOSYS);
  EXPECT_EQ(Verdict(0x40000000 | 165), SECCOMP_RET_ERRNO | ENOSYS) << "the x32 convention";
}

TEST(SyscallFilterTest, AnotherArchitectureEndsTheProcess) {
  seccomp_data data{};
  data.arch = AUDIT_ARCH_I386;
  EXPECT_EQ(Evaluate(ProgramSyscallFilter(), data), SECCOMP_RET_KILL_PROCESS);
}

TEST(SyscallFilterTest, TextHoldsEveryByte) {
  EXPECT_EQ(SyscallFilterText({{0x1234, 1, 2, 0xAABBCCDD}}), "34120102ddccbbaa");
}

}  // namespace
}  // namespace pace
