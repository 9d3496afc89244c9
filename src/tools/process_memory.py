"""How much memory the processes of a program hold together, read from /proc.

What processes share is counted once: pages since a fork, by the kernel's own
shares, and the whole of it between a vfork and the child's exec. A process that
the reader may not look into counts in full.
"""

import os


def stat_of(path):
    """State, parent and what follows of a process or thread."""
    with open(path + "/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def memory_counts(process):
    with open(f"/proc/{process}/statm", "rb") as file:
        return file.read()


def sum_of_lines(path, names):
    """The bytes that the lines of these names give."""
    with open(path, "rb") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(names))


def all_bytes(process):
    """Its memory but for files, what it shares with others included."""
    return sum_of_lines(f"/proc/{process}/status", (b"RssAnon:", b"RssShmem:"))


def own_bytes(process):
    """The same; of what it shares, its part."""
    try:
        return sum_of_lines(f"/proc/{process}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:"))
    except OSError:
        return all_bytes(process)


def num_lent(process):
    """Threads that sleep while a child of theirs runs on this process's memory (vfork)."""
    tasks = f"/proc/{process}/task"
    return sum(stat_of(f"{tasks}/{thread}")[0] == b"D" for thread in os.listdir(tasks))


class ProcessMemory:
    """What the processes of one namespace hold together, but for its first."""

    def __init__(self):
        self.processes = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        self.lent = {}  # by parent: children on its memory that are not yet accounted for

    def sum(self, bytes_of):
        total = 0
        for process in self.processes:
            try:
                total += bytes_of(process)
            except (OSError, IndexError, ValueError):
                pass  # it has ended
        return total

    def borrows(self, process):
        """Whether all that it holds is its parent's; in doubt not."""
        parent = stat_of(f"/proc/{process}")[1].decode()
        if parent not in self.processes:
            return False
        try:
            if parent not in self.lent:
                self.lent[parent] = num_lent(parent)
            if not self.lent[parent] or memory_counts(process) != memory_counts(parent):
                return False
        except OSError:
            return False
        self.lent[parent] -= 1
        return True

    def exceeds(self, limit):
        # The bound from above is cheap, and enough for nearly all.
        return (self.sum(all_bytes) > limit and
                self.sum(lambda each: 0 if self.borrows(each) else own_bytes(each)) > limit)
