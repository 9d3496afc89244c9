"""Runs build/pace as a user would, for the tests beside this file."""

import json
import os
import pathlib
import random
import socket
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("PACE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BINARY = pathlib.Path(os.environ.get("PACE_BINARY_DIR", SOURCE / "build")) / "pace"

# What the tests of all folders share.
sys.path.append(str(pathlib.Path(__file__).parents[1]))

# Seconds for one command: a guard against a hang, never a judgement of speed.
PATIENCE = 1500


def run(*arguments, cwd=None, lines=None):
    """Runs a command; `lines` go to its stdin as JSON, or as they are if they are texts."""
    stdin = {"stdin": subprocess.DEVNULL}
    if lines is not None:
        stdin = {"input": "".join(
            (line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)}
    return subprocess.run(
        [str(BINARY), *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False,
        **stdin)


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def free_ports(count):
    """The first of `count` consecutive free ports."""
    for first in random.sample(range(21000, 60000, 97), 100):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("0.0.0.0", port))
            return first
        except OSError:
            continue
    raise RuntimeError("no free ports")
