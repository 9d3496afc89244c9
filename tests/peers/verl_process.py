"""Runs of verl for the tests beside this file.

verl comes from the environment that `scripts/setup peers` makes, .venv-verl, or from the Python
that PACE_VERL_PYTHON names. The package pace is built as a wheel and unpacked for the test, so the
environment itself stays as it was installed.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

sys.path.append(str(pathlib.Path(__file__).parents[1] / "cli"))

import pace_process  # pylint: disable=wrong-import-position

SOURCE = pace_process.SOURCE
PYTHON = os.environ.get("PACE_VERL_PYTHON", str(SOURCE / ".venv-verl/bin/python"))
BATCH, GROUP = 4, 4
# Processes that train, by a part of their command; all others of a run generate.
TRAINERS = (b"WorkerDict", b"TaskRunner", b"SimpleStorageUnit", b"TransferQueueController",
            b"main_ppo")
# Seconds for one run: a guard against a hang.
PATIENCE = 1500


def unpack_package(folder):
    """The package as its wheel has it, in a folder for PYTHONPATH."""
    subprocess.run([SOURCE / "scripts" / "make_wheel"], check=True, stdout=subprocess.DEVNULL)
    wheel = max((SOURCE / "dist").glob("pace-*.whl"), key=lambda path: path.stat().st_mtime)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


def make_assets(folder):
    subprocess.run([PYTHON, SOURCE / "examples/verl/make_assets.py", folder,
                    SOURCE / "models/tiny"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


class VerlRun:
    """One run in a folder: `wait` for its end, `rows` of its metrics, its `record`."""

    def __init__(self, folder, package, assets, *overrides, slow=None, env=None, apart=False):
        """`apart`: training and generation have cores of their own, as on a cluster."""
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.record = self.folder / "run" / "pace"
        self.metrics = self.folder / "metrics.jsonl"
        self.log = self.folder / "log"
        self.temporary = tempfile.mkdtemp(prefix="pv")    # Ray's sockets need a short path
        program = pace_process.BINARY if slow is None else pathlib.Path(__file__).with_name(
            "slow_pace.py")
        environment = {
            **os.environ, "PYTHONPATH": str(package), "PACE_PROGRAM": str(program),
            "PACE_BINARY_DIR": str(pace_process.BINARY.parent),
            "PACE_SLOW_SHARE": str(slow), "VERL_FILE_LOGGER_PATH": str(self.metrics),
            "PACE_WEIGHTS": str(self.folder / "weights"), "HF_HUB_OFFLINE": "1",
            "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "HYDRA_FULL_ERROR": "1",
            "PATH": f"{pathlib.Path(PYTHON).parent}:{os.environ['PATH']}", **(env or {})}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [SOURCE / "examples/verl/run.sh", str(self.folder), "trainer.logger=[console,file]",
                 f"+ray_kwargs.ray_init._temp_dir={self.temporary}",
                 f"data.train_batch_size={BATCH}", f"actor_rollout_ref.rollout.n={GROUP}",
                 *overrides], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**environment, "PACE_VERL_ASSETS": str(assets)}, start_new_session=True)
        if apart:
            threading.Thread(target=self._keep_apart, daemon=True).start()

    def _keep_apart(self):
        cores = sorted(os.sched_getaffinity(0))
        half = max(1, len(cores) // 2)
        while self.process.poll() is None:
            for process in processes_below(self.temporary, self.process.pid):
                try:
                    command = pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
                    trains = any(name in command for name in TRAINERS)
                    for task in os.listdir(f"/proc/{process}/task"):
                        os.sched_setaffinity(int(task), cores[:half] if trains else cores[half:])
                except (OSError, ValueError):
                    continue
            time.sleep(0.5)

    def rows(self):
        """The metrics of each step so far."""
        if not self.metrics.exists():
            return []
        return [{"step": line["step"], **line["data"]}
                for line in map(json.loads, self.metrics.read_text().splitlines())]

    def wait(self):
        """The exit code."""
        try:
            return self.process.wait(timeout=PATIENCE)
        finally:
            self.end()

    def wait_for_steps(self, count):
        deadline = time.monotonic() + PATIENCE
        while len(self.rows()) < count:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no {count} steps:\n{self.tail()}")
            time.sleep(0.2)

    def tail(self):
        return self.log.read_text(errors="replace")[-4000:]

    def kill(self):
        """As if the machine lost power: every process of the run."""
        for process in processes_below(self.temporary, self.process.pid):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def end(self):
        self.kill()


def processes_below(temporary, root):
    """Processes whose session, environment or command belongs to a run."""
    found = set()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            session = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[3])
        except (OSError, ValueError, IndexError):
            continue
        if temporary.encode() in text or session == root:
            found.add(int(folder.name))
    found.discard(os.getpid())
    return found
