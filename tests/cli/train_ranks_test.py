"""`pace train` on several ranks, which are processes here: started as a launcher does, through
the environment. Timing decides nothing. PACE_LONG_TESTS=1 runs twenty steps on up to four ranks
for every kind of shards, and kills every rank in turn, also under torchrun.
"""

import array
import json
import math
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PACE = os.path.join(os.environ["PACE_BINARY_DIR"], "pace")
LONG = os.environ.get("PACE_LONG_TESTS") == "1"
NUM_STEPS = 20 if LONG else 2
SMALL = ["batch.num_groups=4", "batch.group_size=4", "generation.max_tokens=24",
         "run.evaluate_every=0", "train.token_budget=128", "train.learning_rate=1e-4"]
# Longer than any rank takes to notice; what the test is about is that they all end.
PATIENCE_S = 120


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(rank, size, port, restarts=0):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("SLURM_", "OMPI_", "PMI_", "TORCHELASTIC_"))
             and name not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
    if size > 1:
        clean |= {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
                  "MASTER_PORT": str(port), "TORCHELASTIC_RESTART_COUNT": str(restarts)}
    return clean


class Ranks:
    """The processes of one run; their stderr goes to files."""

    def __init__(self, size, arguments, folder, restarts=0):
        port = free_port()
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.processes = []
        for rank in range(size):
            with open(self.folder / f"rank-{rank}.txt", "w", encoding="utf-8") as errors:
                self.processes.append(subprocess.Popen(
                    [PACE, "train", *arguments], env=environment(rank, size, port, restarts),
                    stdout=subprocess.DEVNULL, stderr=errors))

    def wait(self):
        return [process.wait(timeout=PATIENCE_S) for process in self.processes]

    def text(self, rank):
        return (self.folder / f"rank-{rank}.txt").read_text(encoding="utf-8")

    def last_words(self, rank):
        return [line for line in self.text(rank).splitlines() if line.startswith("pace:")]


def weights_of(run):
    """Name -> floats, of the newest checkpoint."""
    folder = max((pathlib.Path(run) / "checkpoints").glob("step-*"))
    content = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = array.array("f", content[8 + length + begin:8 + length + end])
    return tensors


def distance(left, right):
    difference = sum((a - b) ** 2 for name in left for a, b in zip(left[name], right[name]))
    return math.sqrt(difference / sum(a * a for values in left.values() for a in values))


class TrainRanksTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def path(self, name):
        return os.path.join(self.root, name)

    def arguments(self, name, *more):
        return ["tiny", "--driver", "lab", "--method", "sync", "--out", self.path(name),
                f"run.num_steps={NUM_STEPS}", *SMALL, *more]

    def run_on(self, size, name, *more):
        ranks = Ranks(size, self.arguments(name, *more), self.path(name + "-logs"))
        codes = ranks.wait()
        self.assertEqual(codes, [0] * size, [ranks.text(rank)[-800:] for rank in range(size)])
        for rank in range(1, size):
            self.assertEqual(ranks.text(rank), "", "rank 0 alone prints")
        return weights_of(self.path(name))

    def test_weights_do_not_depend_on_the_number_of_ranks(self):
        one = self.run_on(1, "one")
        shards = ["none", "optimizer", "gradients", "full"] if LONG else ["none", "gradients"]
        for shard in shards:
            for size in [2, 4] if LONG else [2]:
                found = self.run_on(size, f"{shard}-{size}", f"train.shard={shard}")
                far = distance(one, found)
                print(f"train.shard={shard}, {size} ranks, {NUM_STEPS} steps: distance {far:.2e}")
                self.assertLess(far, 1e-5)
        again = self.run_on(2, "again", "train.shard=none")
        self.assertEqual(again, weights_of(self.path("none-2")), "the same bits")

    def wait_for_steps(self, ranks, name, count):
        metrics = pathlib.Path(self.path(name)) / "metrics.jsonl"
        deadline = time.monotonic() + PATIENCE_S
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < count:
            self.assertLess(time.monotonic(), deadline, ranks.text(0))
            self.assertIsNone(ranks.processes[0].poll(), ranks.text(0))
            time.sleep(0.05)

    def kill_one(self, victim, size):
        name = f"killed-{victim}"
        ranks = Ranks(size, self.arguments(name, "run.num_steps=100000"), self.path(name + "-logs"))
        self.addCleanup(lambda: [process.kill() for process in ranks.processes])
        self.wait_for_steps(ranks, name, 1)
        ranks.processes[victim].send_signal(signal.SIGKILL)
        began = time.monotonic()
        codes = ranks.wait()
        print(f"rank {victim} of {size} killed: the others ended after "
              f"{time.monotonic() - began:.1f} s")
        for rank in range(size):
            if rank == victim:
                continue
            self.assertEqual(codes[rank], 2)
            words = ranks.last_words(rank)
            self.assertEqual(len(words), 1, ranks.text(rank))
            self.assertIn(f"rank {rank} of {size}", words[0])

    def test_a_killed_rank_ends_the_others_with_one_line(self):
        for victim in range(3) if LONG else [1]:
            self.kill_one(victim, 3)

    def test_a_restart_goes_on_to_the_bits_of_a_run_never_stopped(self):
        more = ("run.num_steps=4", "run.checkpoint_every=2", "train.shard=gradients")
        straight = self.run_on(2, "straight", *more)
        ranks = Ranks(2, self.arguments("restarted", *more), self.path("logs"))
        self.wait_for_steps(ranks, "restarted", 3)
        ranks.processes[0].send_signal(signal.SIGKILL)
        ranks.wait()
        again = Ranks(2, self.arguments("restarted", *more), self.path("logs"), restarts=1)
        self.assertEqual(again.wait(), [0, 0], again.text(0))
        self.assertEqual(weights_of(self.path("restarted")), straight)

    def test_a_checkpoint_of_three_ranks_resumes_on_others(self):
        self.run_on(3, "saved", "run.num_steps=2", "train.shard=full")
        longer = self.run_on(3, "longer", "run.num_steps=3", "run.checkpoint_every=2",
                             "train.shard=full")
        for size in [1, 2, 4] if LONG else [1, 2]:
            copy = f"copy-{size}"
            shutil.copytree(self.path("saved"), self.path(copy))
            ranks = Ranks(size, ["--resume", self.path(copy), "run.num_steps=3"],
                          self.path(copy + "-logs"))
            self.assertEqual(ranks.wait(), [0] * size, ranks.text(0))
            self.assertLess(distance(longer, weights_of(self.path(copy))), 1e-5)

    def test_a_refused_run_ends_every_rank(self):
        ranks = Ranks(2, self.arguments("bad", "train.learning_rate=2"), self.path("logs"))
        self.assertEqual(ranks.wait(), [2, 2])
        self.assertIn("train.learning_rate", ranks.last_words(0)[0])
        self.assertEqual(len(ranks.last_words(1)), 1)
        self.assertIn("rank 0", ranks.last_words(1)[0])

    @unittest.skipUnless(LONG, "PACE_LONG_TESTS=1 runs torchrun")
    def test_torchrun_restarts_after_a_kill(self):
        more = ("run.num_steps=6", "run.checkpoint_every=2")
        straight = self.run_on(2, "straight", *more)
        name = "elastic"
        launcher = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "2",
             "--max-restarts", "1", PACE, "train", *self.arguments(name, *more)],
            env=environment(0, 1, 0), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(launcher.kill)
        metrics = pathlib.Path(self.path(name)) / "metrics.jsonl"
        deadline = time.monotonic() + PATIENCE_S
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < 3:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        children = pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
        os.kill(int(children.read_text().split()[-1]), signal.SIGKILL)
        _, errors = launcher.communicate(timeout=PATIENCE_S)
        self.assertEqual(launcher.returncode, 0, errors[-2000:])
        self.assertEqual(weights_of(self.path(name)), straight)


if __name__ == "__main__":
    unittest.main()
