"""A Slurm of one node for tests: munged, slurmctld and slurmd of its own, in a folder of its own."""

import os
import pathlib
import shutil
import socket
import subprocess
import time

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "squeue", "scontrol"]


def missing():
    """Why there cannot be one here; empty = nothing."""
    lacking = [name for name in PROGRAMS if find(name) is None]
    if lacking:
        return "not installed: " + ", ".join(lacking)
    return "" if os.geteuid() == 0 else "needs root"


def find(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class SlurmNode:
    def __init__(self, folder, num_cpus):
        self.folder = pathlib.Path(folder)
        self.processes = []
        name = socket.gethostname().split(".")[0]
        for part in ("state", "spool", "munge"):
            (self.folder / part).mkdir()
        munge = self.folder / "munge"
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o400)
        # A requeued job waits for cred_expire, which is otherwise two minutes.
        (self.folder / "slurm.conf").write_text(f"""
ClusterName=test
SlurmctldHost={name}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}/socket,cred_expire=20
CredType=cred/munge
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
KillWait=5
NodeName={name} NodeAddr=127.0.0.1 CPUs={num_cpus} State=UNKNOWN
PartitionName=main Nodes={name} Default=YES MaxTime=INFINITE State=UP
""")
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"))
        self._start("munged", "--foreground", "--force", f"--key-file={munge}/key",
                    f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                    f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self._wait(lambda: (munge / "socket").exists(), "munged")
        self._start("slurmctld", "-D", "-i")
        self._start("slurmd", "-D")
        self._wait(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T").stdout, "a node")

    def _start(self, name, *arguments):
        with open(self.folder / f"{name}.out", "w", encoding="utf-8") as log:
            self.processes.append(subprocess.Popen([find(name), *arguments], env=self.environment,
                                                   stdout=log, stderr=log))

    def _wait(self, done, what):
        deadline = time.monotonic() + 60
        while not done():
            if time.monotonic() > deadline:
                logs = "".join(path.read_text(errors="replace")[-2000:]
                               for path in self.folder.glob("*.log"))
                logs += "".join(path.read_text(errors="replace")[-1000:]
                                for path in self.folder.glob("*.out"))
                raise RuntimeError(f"Slurm: no {what} in time\n{logs}")
            time.sleep(0.2)

    def run(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False)

    def close(self):
        self.run("scancel", "--full", "--user=root")
        deadline = time.monotonic() + 20
        while self.run("squeue", "-h").stdout.strip() and time.monotonic() < deadline:
            time.sleep(0.2)
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
