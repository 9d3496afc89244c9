// The seccomp filter of programs.
//
// Namespaces and missing capabilities already isolate a program; the filter also blocks the parts
// of the kernel in which isolation has failed before. These calls fail with EPERM: those that
// create namespaces, mounts, sockets, traces, keys, modules, rings or unlimited shared memory;
// those that set limits or scheduling of another process; those that set the sizes of a socket's
// buffers. Calls newer than this list fail with ENOSYS; calls of another architecture kill the
// process.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_SANDBOX_SYSCALL_FILTER_H_
#define PACE_SANDBOX_SYSCALL_FILTER_H_

#include <linux/filter.h>

#include <string>
#include <vector>

namespace pace {

// Empty on an unsupported architecture.
std::vector<sock_filter> ProgramSyscallFilter();

// Its bytes as the kernel reads them, in hexadecimal digits.
std::string SyscallFilterText(const std::vector<sock_filter>& filter);

}  // namespace pace

#endif  // PACE_SANDBOX_SYSCALL_FILTER_H_
