#!/usr/bin/env python3
"""verl's own tests of its V1 trainer: none that passes with verl's asynchronous buffer may fail with
PaceSampler in its place.

    git clone https://github.com/verl-project/verl CHECKOUT && git -C CHECKOUT checkout 1dda039b
    .venv-verl/bin/python tests/peers/verl_own_tests.py CHECKOUT

verl's packages do not contain its tests, so no target runs this. CHECKOUT gives the tests; the code
under test is the release that is installed. A test whose commit is older than the release may fail
with both. Needs pytest, in the environment or on PYTHONPATH.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import verl_process

TESTS = "tests/trainer/ppo/v1"
# A plugin of pytest. Tests import the buffer by name, so it is replaced before they do.
PLUGIN = """
import os
import ray
from verl.trainer.ppo.v1 import replay_buffer, trainer_base

# TransferQueue waits for ever where Ray counts fewer cores than it has storage units.
ray.init(num_cpus=16, include_dashboard=False, log_to_driver=False)
if os.environ["BUFFER"] == "pace":
    from pace.verl.sampler import PaceSampler

    class ConfiguredSampler(PaceSampler):
        def __init__(self, *args, sampler_kwargs=None, **kwargs):
            # Two tests assert that a sampler adds no metrics of its own.
            super().__init__(*args, sampler_kwargs={"metrics": False, **(sampler_kwargs or {})},
                             **kwargs)

    replay_buffer.ReplayBufferAsync = trainer_base.ReplayBufferAsync = ConfiguredSampler
"""


def outcomes(folder, buffer):
    """Names of tests by outcome: PASSED, FAILED, ERROR."""
    done = subprocess.run(
        [verl_process.PYTHON, "-B", "-m", "pytest", "-q", "-rA", "--tb=no", "-p", "own_plugin",
         "-p", "no:cacheprovider", "--continue-on-collection-errors", "--rootdir", str(folder),
         str(folder / "tests")],
        cwd=folder, capture_output=True, text=True, timeout=verl_process.PATIENCE, check=False,
        env={**os.environ, "BUFFER": buffer, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH":
             f"{folder}:{folder / 'package'}:{os.environ.get('PYTHONPATH', '')}"})
    found = {"PASSED": set(), "FAILED": set(), "ERROR": set()}
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE):
        found[outcome].add(name)
    if not found["PASSED"]:
        raise RuntimeError(done.stdout + done.stderr)
    print(f"{buffer}: " + ", ".join(f"{len(names)} {outcome.lower()}"
                                    for outcome, names in found.items()))
    return found


def main():
    if len(sys.argv) != 2 or not (pathlib.Path(sys.argv[1]) / TESTS).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        verl_process.unpack_package(folder / "package")
        (folder / "own_plugin.py").write_text(PLUGIN)
        # Without the checkout around them: its folder `verl` would hide the installed one.
        shutil.copytree(pathlib.Path(sys.argv[1]) / TESTS, folder / "tests")
        stock, pace = outcomes(folder, "verl"), outcomes(folder, "pace")
    for outcome in ("FAILED", "ERROR"):
        for name in sorted(stock[outcome]):
            print(f"with both: {outcome.lower()}: {name}" if name in pace[outcome]
                  else f"with verl's buffer only: {outcome.lower()}: {name}")
    worse = sorted(stock["PASSED"] - pace["PASSED"])
    for name in worse:
        print(f"passes with verl's buffer, not with PaceSampler: {name}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
