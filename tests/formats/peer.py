"""Runs formats_peer, and finds the packages it is compared with."""

import importlib
import os
import pathlib
import subprocess
import sys

BINARY = pathlib.Path(os.environ.get("PACE_BINARY_DIR", "build")) / "formats_peer"


def run(*arguments):
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.splitlines()


def missing(*packages):
    """Why the tests of these packages cannot run, or nothing."""
    absent = []
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError:
            absent.append(package)
    if not absent:
        return ""
    reason = f"NOT CHECKED: Python cannot import {', '.join(absent)}"
    print(reason, file=sys.stderr)
    return reason
