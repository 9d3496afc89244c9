// The seccomp filter of programs: what the kernel does not even try for them.
//
// Namespaces and the lack of capabilities already hold a program; the filter
// keeps it away from the parts of the kernel that isolation has failed in
// before. System calls that make namespaces, mounts, sockets, traces, keys,
// modules, rings or shared memory outside the limits fail with EPERM, as do those that
// set limits or scheduling of another process than the caller, or the sizes of a
// socket's buffers; those newer than this list fail with ENOSYS; another architecture's
// end the process.
//
// Thread-safety: functions of their arguments.
#ifndef PACE_SANDBOX_SYSCALL_FILTER_H_
#define PACE_SANDBOX_SYSCALL_FILTER_H_

#include <linux/filter.h>

#include <string>
#include <vector>

namespace pace {

// Empty on an architecture that it was not written for.
std::vector<sock_filter> ProgramSyscallFilter();

// Its bytes as the kernel reads them, in hexadecimal digits.
std::string SyscallFilterText(const std::vector<sock_filter>& filter);

}  // namespace pace

#endif  // PACE_SANDBOX_SYSCALL_FILTER_H_
