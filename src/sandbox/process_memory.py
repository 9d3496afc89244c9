"""How much memory the processes of a program hold together, read from /proc.

What processes share is counted once: pages since a fork, by the kernel's own
shares, and the whole of it where the kernel says that two processes run on one
memory (vfork). A process that the reader may not look into counts in full. Page
tables, swapped pages and the buffers of sockets count as well.
"""

import ctypes
import math
import os
import time

_LIBC = ctypes.PyDLL(None, use_errno=True)
_MACHINE = os.uname().machine
_KCMP = {"x86_64": 312, "aarch64": 272}
_KCMP_VM = 1
# What a socket may queue: net.core.wmem_default, and its last message.
_USUAL_SOCKET_BYTES, _LAST_MESSAGE_BYTES = 212992, 1 << 16


def stat_of(path):
    """State, parent and what follows of a process or thread."""
    with open(path + "/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def sum_of_lines(path, names):
    """The bytes that the lines of these names give."""
    with open(path, "rb") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(names))


def all_bytes(process):
    """Its memory but for files, what it shares with others included."""
    return sum_of_lines(f"/proc/{process}/status",
                        (b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:", b"HugetlbPages:"))


def own_bytes(process):
    """The same; of what it shares, its part."""
    try:
        shares = sum_of_lines(f"/proc/{process}/smaps_rollup",
                              (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))
    except OSError:
        return all_bytes(process)
    return shares + sum_of_lines(f"/proc/{process}/status", (b"VmPTE:", b"HugetlbPages:"))


def bytes_per_socket():
    try:
        with open("/proc/sys/net/core/wmem_default", "rb") as file:
            return int(file.read()) + _LAST_MESSAGE_BYTES
    except (OSError, ValueError):
        return _USUAL_SOCKET_BYTES + _LAST_MESSAGE_BYTES


def num_sockets():
    """Of this network namespace, those on their way between processes included."""
    with open("/proc/self/net/sockstat", "rb") as file:
        return int(file.readline().split()[2])


class ProcessMemory:
    """What the processes of one namespace hold together, but for its first."""

    def __init__(self):
        self.processes = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]

    def sum(self, bytes_of, until=math.inf):
        """Infinite where it takes longer than until this time."""
        total = 0
        for process in self.processes:
            if time.monotonic() > until:
                return math.inf
            try:
                total += bytes_of(process)
            except (OSError, IndexError, ValueError):
                pass  # it has ended
        return total

    def borrows(self, process):
        """Whether all that it holds is its parent's; in doubt not."""
        parent = stat_of(f"/proc/{process}")[1].decode()
        return (parent in self.processes and
                _LIBC.syscall(_KCMP[_MACHINE], int(process), int(parent), _KCMP_VM, 0, 0) == 0)

    def bound(self):
        """No less than what they hold, and quickly known."""
        return self.sum(all_bytes)

    def exact(self, until=math.inf):
        return self.sum(lambda each: 0 if self.borrows(each) else own_bytes(each), until)
