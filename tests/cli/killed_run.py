"""Runs of `pace train` that are killed or told to stop at random moments and resumed, for the
tests beside this file."""

import signal
import subprocess
import time

import pace_process

# What a run returns that was told to stop, and saved.
STOPPED = 3


def go_on_command(first, run):
    """How a run that was ended goes on: it has a directory, or it begins."""
    if (run / "manifest.json").exists():
        return [str(pace_process.BINARY), "train", "--resume", str(run)]
    return first


def after_steps(run, count):
    """The moment at which the run has recorded this many steps."""
    def is_there():
        metrics = run / "metrics.jsonl"
        return metrics.exists() and metrics.read_bytes().count(b"\n") >= count
    return is_there


def wait_until(process, is_there):
    """Whether it came before the process ended."""
    deadline = time.monotonic() + pace_process.PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if is_there():
            return True
        time.sleep(0.005)
    return False


def finish(first, run, moments, cwd):
    """Runs the command `first`, whose directory is `run`, to its end. Each of `moments`, a pair of
    seconds and signal, or seconds before a kill, or a function that says when to kill, ends it if
    it is not over by then. Returns how often it was ended."""
    moments = [moment if isinstance(moment, tuple) else (moment, signal.SIGKILL)
               for moment in moments]
    command = first
    ends = 0
    while True:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, cwd=cwd)
        sent = None
        wait, number = moments[ends] if ends < len(moments) else (pace_process.PATIENCE, None)
        if callable(wait):
            wait = 0 if wait_until(process, wait) else pace_process.PATIENCE
        try:
            _, errors = process.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            if number is None:
                process.kill()
                process.communicate()
                raise
            sent = number
            process.send_signal(number)
            _, errors = process.communicate(timeout=pace_process.PATIENCE)
        # Before the run proper begins a signal ends the process as it ends any other.
        expected = {0}
        if sent is not None:
            expected |= {-sent} if sent == signal.SIGKILL else {-sent, STOPPED}
        if process.returncode not in expected:
            raise AssertionError(f"{command}: {process.returncode} after {sent}: {errors}")
        if process.returncode == 0:
            return ends
        ends += 1
        command = go_on_command(first, run)
