#!/usr/bin/env python3
"""build/pace at a fraction of its speed: stopped for most of each tenth of a second.

On the CPU a small model generates faster than it trains. With this in place of the program, weight
syncs interrupt responses as they do where generation is the slow part. PACE_SLOW_SHARE is the
share of the time in which the program runs.
"""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

_PROGRAM = pathlib.Path(os.environ.get(
    "PACE_BINARY_DIR", pathlib.Path(__file__).resolve().parents[2] / "build")) / "pace"
_SHARE = float(os.environ.get("PACE_SLOW_SHARE", "0.1"))
_PERIOD = 0.1


def main():
    process = subprocess.Popen([str(_PROGRAM), *sys.argv[1:]],
                               preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))
    # Loading is not slowed down.
    while "--ready-file" in sys.argv and process.poll() is None:
        if os.path.exists(sys.argv[sys.argv.index("--ready-file") + 1]):
            break
        time.sleep(0.01)
    while process.poll() is None:
        time.sleep(_PERIOD * _SHARE)
        process.send_signal(signal.SIGSTOP)
        time.sleep(_PERIOD * (1 - _SHARE))
        process.send_signal(signal.SIGCONT)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
