"""A run of pace in the background and what it says, with the time of each line."""

import re
import subprocess
import threading
import time

import pace_process

# Seconds: a guard against a hang, never a judgement of speed.
PATIENCE = 900


class WatchedRun:
    """One command; `lines` are pairs of the time and the text of each line on its stderr."""

    def __init__(self, *arguments, cwd=None):
        self.process = subprocess.Popen([str(pace_process.BINARY), *map(str, arguments)], cwd=cwd,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line))

    def said(self, pattern, after=0.0):
        """When the run said it first, after this time; None: not yet."""
        for when, line in list(self.lines):
            if when > after and re.search(pattern, line):
                return when
        return None

    def wait_for(self, pattern, after=0.0):
        """When the run said it, after this time."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if (when := self.said(pattern, after)) is not None:
                return when
            if ended:
                break
            time.sleep(0.02)
        raise AssertionError(f"the run did not say {pattern!r}:\n{self.text()}")

    def running(self):
        return self.process.poll() is None

    def text(self):
        return "".join(line for _, line in self.lines)

    def end(self):
        if self.running():
            self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()
