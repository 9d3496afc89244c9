"""`pace train` on several ranks, which are processes here: started as a launcher does, through
the environment. PACE_LONG_TESTS=1 runs twenty steps on up to four ranks for every kind of shards,
twice each, and kills every rank in turn, also under torchrun and in the runtime; only then does
timing decide anything.
"""

import array
import dataclasses
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
EXPERTS = os.path.join(os.environ["PACE_SOURCE_DIR"], "models/tiny-moe")
LONG = os.environ.get("PACE_LONG_TESTS") == "1"
NUM_STEPS = 20 if LONG else 2
NUM_GROUPS = 4
SMALL = [f"batch.num_groups={NUM_GROUPS}", "batch.group_size=4", "generation.max_tokens=24",
         "run.evaluate_every=0", "train.token_budget=128",
         # The rewards of most groups would otherwise be equal, which gives no gradient.
         "train.overlong_buffer=16"]
MODES = ["none", "optimizer", "gradients", "full"]
# Longer than any rank takes to notice; what the test is about is that they all end.
PATIENCE_S = 120
# Within which all ranks have ended after one was killed.
NOTICED_S = 10


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


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    settings: tuple
    shards: tuple  # those of a short test


MODELS = [Model("dense", (), ("none", "gradients")),
          Model("experts", (f"policy.model={EXPERTS}",), ("optimizer", "full"))]


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
        driver = [] if "--driver" in more else ["--driver", "lab", "--method", "sync"]
        return ["tiny", *driver, "--out", self.path(name), f"run.num_steps={NUM_STEPS}", *SMALL,
                *more]

    def run_on(self, size, name, *more):
        ranks = Ranks(size, self.arguments(name, *more), self.path(name + "-logs"))
        codes = ranks.wait()
        self.assertEqual(codes, [0] * size, [ranks.text(rank)[-800:] for rank in range(size)])
        for rank in range(1, size):
            self.assertEqual(ranks.text(rank), "", "rank 0 alone prints")
        gradients = [row["train/grad_norm"] for row in self.rows(name)]
        self.assertLessEqual(gradients.count(0), len(gradients) // 4, "it hardly learns")
        return weights_of(self.path(name))

    def rows(self, name):
        metrics = pathlib.Path(self.path(name)) / "metrics.jsonl"
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def files_of(self, name):
        """What a run of the lab must have in common with a run of as many ranks."""
        newest = max((pathlib.Path(self.path(name)) / "checkpoints").glob("step-*"))
        return [(newest / part).read_bytes()
                for part in ("model.safetensors", "optimizer.safetensors")]

    def check_ranks(self, model, shard, size, one):
        settings = (*model.settings, f"train.shard={shard}")
        name = f"{model.name}-{shard}-{size}"
        far = distance(one, self.run_on(size, name, *settings))
        print(f"{model.name}, train.shard={shard}, {size} ranks, {NUM_STEPS} steps: "
              f"distance {far:.2e}")
        self.assertLess(far, 1e-5, name)
        self.run_on(size, name + "-again", *settings)
        self.assertEqual(self.files_of(name), self.files_of(name + "-again"), name)

    def test_weights_do_not_depend_on_the_number_of_ranks(self):
        for model in MODELS:
            one = self.run_on(1, model.name, *model.settings)
            self.run_on(1, model.name + "-again", *model.settings)
            self.assertEqual(self.files_of(model.name), self.files_of(model.name + "-again"))
            for shard in MODES if LONG else model.shards:
                for size in [2, 4] if LONG else [2]:
                    self.check_ranks(model, shard, size, one)

    def wait_for_steps(self, ranks, name, count):
        metrics = pathlib.Path(self.path(name)) / "metrics.jsonl"
        deadline = time.monotonic() + PATIENCE_S
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < count:
            self.assertLess(time.monotonic(), deadline, ranks.text(0))
            self.assertIsNone(ranks.processes[0].poll(), ranks.text(0))
            time.sleep(0.05)

    def kill_one(self, victim, size, driver="lab"):
        name = f"{driver}-killed-{victim}"
        ranks = Ranks(size, self.arguments(name, "run.num_steps=100000", "--driver", driver),
                      self.path(name + "-logs"))
        self.addCleanup(lambda: [process.kill() for process in ranks.processes])
        self.wait_for_steps(ranks, name, 1)
        ranks.processes[victim].send_signal(signal.SIGKILL)
        began = time.monotonic()
        codes = ranks.wait()
        took = time.monotonic() - began
        print(f"{driver}, rank {victim} of {size} killed: the others ended after {took:.1f} s")
        if LONG:
            self.assertLess(took, NOTICED_S)
        for rank in range(size):
            if rank == victim:
                continue
            self.assertEqual(codes[rank], 2)
            words = ranks.last_words(rank)
            self.assertEqual(len(words), 1, ranks.text(rank))
            self.assertIn(f"rank {rank} of {size}", words[0])
            self.assertNotIn("This is typically", words[0], "gloo's advice")

    def test_a_killed_rank_ends_the_others_with_one_line(self):
        for driver in ["lab", "runtime"] if LONG else ["lab"]:
            for victim in range(4) if LONG else [1]:
                self.kill_one(victim, 4 if LONG else 3, driver)

    def test_a_restart_goes_on_to_the_bits_of_a_run_never_stopped(self):
        more = ("run.num_steps=4", "run.checkpoint_every=2", "train.shard=gradients")
        self.run_on(2, "straight", *more)
        ranks = Ranks(2, self.arguments("restarted", *more), self.path("logs"))
        self.wait_for_steps(ranks, "restarted", 3)
        ranks.processes[0].send_signal(signal.SIGKILL)
        ranks.wait()
        again = Ranks(2, self.arguments("restarted", *more), self.path("logs"), restarts=1)
        self.assertEqual(again.wait(), [0, 0], again.text(0))
        self.assertEqual(self.files_of("restarted"), self.files_of("straight"))

    def check_trained_once(self, name, num_steps):
        """Every step once, and every group at most once."""
        run = pathlib.Path(self.path(name))
        self.assertEqual([row["step"] for row in self.rows(name)], list(range(num_steps)))
        decisions = [json.loads(line)
                     for line in (run / "decisions.jsonl").read_text().splitlines()]
        trained = [line["group"] for line in decisions if line["verdict"] == "admit"]
        self.assertEqual(len(trained), num_steps * NUM_GROUPS)
        self.assertEqual(len(set(trained)), len(trained))

    def test_a_restarted_run_of_the_runtime_trains_nothing_twice(self):
        arguments = self.arguments("runtime", "--driver", "runtime", "run.num_steps=8",
                                   "run.checkpoint_every=2")
        for restarts, victim in enumerate([1, 0]):
            ranks = Ranks(2, arguments, self.path("logs"), restarts)
            self.wait_for_steps(ranks, "runtime", 3 * (restarts + 1))
            ranks.processes[victim].send_signal(signal.SIGKILL)
            ranks.wait()
        again = Ranks(2, arguments, self.path("logs"), restarts=2)
        self.assertEqual(again.wait(), [0, 0], again.text(0))
        self.check_trained_once("runtime", 8)

    def test_a_checkpoint_of_four_ranks_resumes_on_others(self):
        self.run_on(4, "saved", "run.num_steps=2", "train.shard=full")
        longer = self.run_on(4, "longer", "run.num_steps=3", "run.checkpoint_every=2",
                             "train.shard=full")
        for size in [1, 2, 3] if LONG else [1, 3]:
            copy = f"copy-{size}"
            shutil.copytree(self.path("saved"), self.path(copy))
            ranks = Ranks(size, ["--resume", self.path(copy), "run.num_steps=3"],
                          self.path(copy + "-logs"))
            self.assertEqual(ranks.wait(), [0] * size, ranks.text(0))
            far = distance(longer, weights_of(self.path(copy)))
            print(f"a checkpoint of 4 ranks on {size}: distance {far:.2e}")
            self.assertLess(far, 1e-5)

    def test_a_refused_run_ends_every_rank(self):
        ranks = Ranks(2, self.arguments("bad", "train.learning_rate=2"), self.path("logs"))
        self.assertEqual(ranks.wait(), [2, 2])
        self.assertIn("train.learning_rate", ranks.last_words(0)[0])
        self.assertEqual(len(ranks.last_words(1)), 1)
        self.assertIn("rank 0", ranks.last_words(1)[0])

    def ranks_of(self, launcher):
        """Rank to process id, of the processes that torchrun has started."""
        children = pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
        found = {}
        for child in children.read_text().split():
            variables = pathlib.Path(f"/proc/{child}/environ").read_bytes().decode().split("\0")
            found |= {int(text.partition("=")[2]): int(child) for text in variables
                      if text.startswith("RANK=")}
        return found

    def run_torchrun(self, name, victim, *more):
        """A run that torchrun starts again after a rank was killed."""
        launcher = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "2",
             "--max-restarts", "1", PACE, "train", *self.arguments(name, *more)],
            env=environment(0, 1, 0), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(launcher.kill)
        metrics = pathlib.Path(self.path(name)) / "metrics.jsonl"
        deadline = time.monotonic() + PATIENCE_S
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < 3:
            if launcher.poll() is not None:
                self.fail(f"torchrun ended early: {launcher.stderr.read()[-2000:]}")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        os.kill(self.ranks_of(launcher)[victim], signal.SIGKILL)
        _, errors = launcher.communicate(timeout=PATIENCE_S)
        self.assertEqual(launcher.returncode, 0, errors[-2000:])

    @unittest.skipUnless(LONG, "PACE_LONG_TESTS=1 runs torchrun")
    def test_torchrun_restarts_after_a_kill_of_each_rank(self):
        more = ("run.num_steps=6", "run.checkpoint_every=2")
        self.run_on(2, "straight", *more)
        for victim in range(2):
            self.run_torchrun(f"elastic-{victim}", victim, *more)
            self.assertEqual(self.files_of(f"elastic-{victim}"), self.files_of("straight"))
            self.run_torchrun(f"runtime-{victim}", victim, *more, "--driver", "runtime")
            self.check_trained_once(f"runtime-{victim}", 6)


if __name__ == "__main__":
    unittest.main()
