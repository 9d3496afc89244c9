#include "sandbox/syscall_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/check.h"

namespace pace {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// Numbers are shared by all architectures from here on; later ones are unknown.
constexpr uint32_t kNewestKnown = 450;  // set_mempolicy_home_node

// Newer than some headers; the numbers are the same everywhere.
constexpr uint32_t kIoUringSetup = 425;
constexpr uint32_t kIoUringRegister = 427;
constexpr uint32_t kOpenTree = 428;
constexpr uint32_t kFspick = 433;
constexpr uint32_t kClone3 = 435;
constexpr uint32_t kPidfdGetfd = 438;
constexpr uint32_t kProcessMadvise = 440;
constexpr uint32_t kMountSetattr = 442;
constexpr uint32_t kQuotactlFd = 443;
constexpr uint32_t kMemfdSecret = 447;
constexpr uint32_t kProcessMrelease = 448;

// SO_SNDBUF, SO_RCVBUF and their privileged forms, the same on both architectures. With the
// kernel's sizes the memory of a program's sockets is bounded by their number.
constexpr uint32_t kSocketLevel = 1;
constexpr uint32_t kBufferOptions[] = {7, 8, 32, 33};

// Calls that name a process by their first argument: 0, the caller itself, is allowed.
constexpr uint32_t kSelfOnly[] = {SYS_prlimit64, SYS_sched_setscheduler, SYS_sched_setparam,
                                  SYS_sched_setattr, SYS_sched_setaffinity};

constexpr uint32_t kNamespaceFlags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS |
                                     CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | 0x80;

constexpr uint32_t kRefused[] = {
    // Namespaces and mounts.
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    kMountSetattr,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_swapon,
    SYS_swapoff,
    SYS_quotactl,
    kQuotactlFd,
    SYS_mknodat,
    // Sockets; a socketpair reaches nobody but the program itself.
    SYS_socket,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    // Other processes.
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    kPidfdGetfd,
    kProcessMadvise,
    kProcessMrelease,
    // Memory that no limit of a process counts.
    SYS_memfd_create,
    kMemfdSecret,
    SYS_shmget,
    SYS_shmat,
    SYS_msgget,
    SYS_semget,
    SYS_mq_open,
    // The kernel and the machine.
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_syslog,
    SYS_acct,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_vhangup,
    SYS_personality,
    SYS_fanotify_init,
    SYS_lookup_dcookie,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_ioprio_set,
    SYS_mbind,
    SYS_set_mempolicy,
    SYS_io_setup,
    SYS_io_submit,
    SYS_nfsservctl,
    SYS_remap_file_pages,
#if defined(__x86_64__)
    SYS_mknod,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
    SYS__sysctl,
    SYS_kexec_file_load,
#endif
};

class FilterWriter {
 public:
  void Load(size_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset), 0, 0); }
  void Return(uint32_t action) { Add(BPF_RET | BPF_K, action, 0, 0); }
  // `comparison`: BPF_JEQ, BPF_JGE or BPF_JSET against the loaded word.
  void ReturnIf(uint16_t comparison, uint32_t value, uint32_t action) {
    Add(static_cast<uint16_t>(BPF_JMP | BPF_K | comparison), value, 0, 1);
    Return(action);
  }
  void ReturnUnless(uint32_t value, uint32_t action) {
    Add(BPF_JMP | BPF_K | BPF_JEQ, value, 1, 0);
    Return(action);
  }
  void And(uint32_t mask) { Add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0); }
  // The low half of a system call's argument: both architectures are little-endian.
  void LoadArgument(size_t index) { Load(offsetof(seccomp_data, args) + index * sizeof(uint64_t)); }
  // The rules that `rules` adds bind system call `number` alone; they start with that
  // number loaded and may load other words.
  template <typename Rules>
  void ForCall(uint32_t number, Rules rules) {
    Add(BPF_JMP | BPF_K | BPF_JEQ, number, 0, 0);
    const size_t jump = filter_.size() - 1;
    rules();
    Return(SECCOMP_RET_ALLOW);
    const size_t length = filter_.size() - jump - 1;
    PACE_CHECK(length < 256, "a jump of ", length, " instructions");
    filter_[jump].jf = static_cast<uint8_t>(length);
  }
  std::vector<sock_filter> Take() { return std::move(filter_); }

 private:
  void Add(uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false) {
    filter_.push_back({code, if_true, if_false, k});
  }
  std::vector<sock_filter> filter_;
};

constexpr uint32_t Fail(int error) {
  return SECCOMP_RET_ERRNO | (static_cast<uint32_t>(error) & SECCOMP_RET_DATA);
}

void AddCloneRules(FilterWriter& filter) {
  filter.ForCall(SYS_clone, [&filter] {
    filter.LoadArgument(0);
    filter.ReturnIf(BPF_JSET, kNamespaceFlags, Fail(EPERM));
    // A parent that sleeps until its child ends or executes, while the child holds a
    // copy of its memory: no library does it.
    filter.And(CLONE_VFORK | CLONE_VM);
    filter.ReturnIf(BPF_JEQ, CLONE_VFORK, Fail(EPERM));
  });
}

// Limits and scheduling of the caller alone: process 1 has the same user.
void AddProcessRules(FilterWriter& filter) {
  for (const uint32_t number : kSelfOnly) {
    filter.ForCall(number, [&filter] {
      filter.LoadArgument(0);
      filter.ReturnUnless(0, Fail(EPERM));
    });
  }
  filter.ForCall(SYS_setpriority, [&filter] {
    // PRIO_USER, which is 2, covers process 1.
    filter.LoadArgument(0);
    filter.ReturnIf(BPF_JGE, 2, Fail(EPERM));
    filter.LoadArgument(1);
    filter.ReturnUnless(0, Fail(EPERM));
  });
}

}  // namespace

std::vector<sock_filter> ProgramSyscallFilter() {
  if (kArchitecture == 0) return {};
  FilterWriter filter;
  filter.Load(offsetof(seccomp_data, arch));
  filter.ReturnUnless(kArchitecture, SECCOMP_RET_KILL_PROCESS);

  filter.Load(offsetof(seccomp_data, nr));
  // Covers the second calling convention of x86-64, whose numbers are large.
  filter.ReturnIf(BPF_JGE, kNewestKnown + 1, Fail(ENOSYS));
  // Its flags are behind a pointer, where a filter cannot look; libraries fall
  // back to clone.
  filter.ReturnIf(BPF_JEQ, kClone3, Fail(ENOSYS));
  for (uint32_t number = kIoUringSetup; number <= kIoUringRegister; ++number) {
    filter.ReturnIf(BPF_JEQ, number, Fail(ENOSYS));
  }
  for (uint32_t number = kOpenTree; number <= kFspick; ++number) {
    filter.ReturnIf(BPF_JEQ, number, Fail(EPERM));
  }
  for (const uint32_t number : kRefused) filter.ReturnIf(BPF_JEQ, number, Fail(EPERM));
  AddCloneRules(filter);
  AddProcessRules(filter);
  filter.ForCall(SYS_setsockopt, [&filter] {
    filter.LoadArgument(1);
    filter.ReturnUnless(kSocketLevel, SECCOMP_RET_ALLOW);
    filter.LoadArgument(2);
    for (const uint32_t option : kBufferOptions) filter.ReturnIf(BPF_JEQ, option, Fail(EPERM));
  });
  filter.Return(SECCOMP_RET_ALLOW);
  return filter.Take();
}

std::string SyscallFilterText(const std::vector<sock_filter>& filter) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::vector<unsigned char> bytes(filter.size() * sizeof(sock_filter));
  if (!bytes.empty()) std::memcpy(bytes.data(), filter.data(), bytes.size());
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace pace
