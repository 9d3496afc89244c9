"""Runs of `pace train` that are killed at random moments and resumed, for the tests beside this file."""

import shutil
import signal
import subprocess

import pace_process


def finish(command, run, waits, cwd):
    """Runs `command`, whose directory is `run`, to its end. Each of `waits`, in seconds, ends in a
    kill if the run is not over by then. Returns how often it was killed."""
    waits = list(waits)
    first = command
    kills = 0
    while True:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, cwd=cwd)
        try:
            wait = waits[kills] if kills < len(waits) else pace_process.PATIENCE
            _, errors = process.communicate(timeout=wait)
            if process.returncode != 0:
                raise AssertionError(errors)
            return kills
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
        saved = run / "checkpoints"
        if saved.exists() and any(saved.glob("step-*")):
            command = [str(pace_process.BINARY), "train", "--resume", str(run)]
        elif run.exists():
            # Killed before the first checkpoint: begin again.
            shutil.rmtree(run)
            command = first
