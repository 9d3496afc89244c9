"""What holds a program to its memory and its share of the processor, seen from process 1.

Each bound has a look(late), called about every 50 ms: true when the program has to be
ended. `late` says that this look comes long after its time, so that the program may be
what keeps this process from running.
"""

import math
import os
import signal
import time

_EXACT_PATIENCE = 0.1  # for the exact sum, before the program is stopped for it


class GroupMemory:
    """A control group bounds memory. The kernel ends one process of a program that passes
    the limit; this ends the others, which would wait for it."""

    def __init__(self, events):
        self.events = events
        self.num_before = self.num_killed()

    def num_killed(self):
        for line in os.pread(self.events, 4096, 0).splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
        return 0

    def look(self, late):
        return self.num_killed() > self.num_before


class WatchedMemory:
    """Adds up what the processes hold. A sum above the limit counts when the processes
    stood still for it: one that forks, ends or executes meanwhile would count twice."""

    def __init__(self, limit, socket_bytes):
        self.limit = limit
        try:
            num_sockets()
            self.socket_bytes = socket_bytes
        except (OSError, IndexError, ValueError):
            self.socket_bytes = 0  # this kernel does not say how many there are

    def room(self):
        return self.limit - (num_sockets() * self.socket_bytes if self.socket_bytes else 0)

    def look(self, late):
        # The bound from above is quick, and enough for nearly all.
        memory = ProcessMemory()
        if memory.bound() <= self.room():
            return False
        if not late and memory.exact(time.monotonic() + _EXACT_PATIENCE) <= self.room():
            return False
        return self.exceeds_while_stopped(memory)

    def exceeds_while_stopped(self, before):
        own_stops = {process for process in before.processes if self.is_stopped(process)}
        os.kill(-1, signal.SIGSTOP)
        memory = ProcessMemory()
        if memory.exact() > self.room():
            return True
        for process in set(memory.processes) - own_stops:
            try:
                os.kill(int(process), signal.SIGCONT)
            except ProcessLookupError:
                pass
        return False

    @staticmethod
    def is_stopped(process):
        try:
            return stat_of(f"/proc/{process}")[0] in (b"T", b"t")
        except (OSError, IndexError):
            return False


class SharedProcessor:
    """Keeps a program of many running threads to the weight of about one: a step of
    niceness is a quarter of a thread's weight."""

    @staticmethod
    def running():
        """Id and niceness of the threads that run or want to."""
        for process in ProcessMemory().processes:
            try:
                for thread in os.listdir(f"/proc/{process}/task"):
                    fields = stat_of(f"/proc/{process}/task/{thread}")
                    if fields[0] == b"R":
                        yield int(thread), int(fields[16])
            except (OSError, IndexError, ValueError):
                pass  # it has ended

    def look(self, late):
        threads = list(self.running())
        wanted = min(19, round(math.log(max(len(threads), 1)) / math.log(1.25)))
        for thread, niceness in threads:
            if niceness < wanted:
                try:
                    os.setpriority(os.PRIO_PROCESS, thread, wanted)
                except OSError:
                    pass  # it has ended
        return False
