"""Jobs on a Slurm of one node, with two trainer ranks: one that `pace launch slurm` wrote trains, and
survives the loss of an engine, of each rank and of the whole job; a requeued job of the lab ends in
the bits of a job that was not. Skipped where Slurm (slurmd, slurmctld, munge) is not installed."""

import os
import pathlib
import signal
import tempfile
import time
import unittest

import pace_process
import slurm_node

NUM_STEPS = 20
NUM_RANKS = 2
LONG = os.environ.get("PACE_LONG_TESTS") == "1"
# A batch that takes a moment, for the tests about restarts.
SMALL = ["batch.num_groups=4", "batch.group_size=4", "generation.max_tokens=24",
         "run.evaluate_every=0", "train.token_budget=128", "train.overlong_buffer=16"]
# Within which all ranks have ended after one was killed.
NOTICED_S = 10


@unittest.skipIf(slurm_node.missing(), slurm_node.missing())
class SlurmTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "slurm").mkdir()
        self.slurm = slurm_node.SlurmNode(self.folder / "slurm", num_cpus=4)
        self.addCleanup(self.slurm.close)
        self.job_folder = self.folder / "job"

    def log(self):
        """What the job printed, and the end of what its engines did."""
        # Not below weights/, whose folders come and go.
        paths = [*self.job_folder.glob("*.log"), *self.job_folder.glob("logs/*.log")]
        return "".join(path.read_text(errors="replace")[-(4000 if path.parent.name == "logs" else 0):]
                       for path in sorted(paths))

    def last_words(self, rank):
        return [line for line in self.log().splitlines()
                if line.startswith(f"pace: rank {rank} of {NUM_RANKS}")]

    def rows(self, run):
        path = run / "metrics.jsonl"
        return pace_process.json_lines(path.read_text()) if path.exists() else []

    def num_steps(self, run=None):
        path = (run or self.job_folder / "run") / "metrics.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def wait(self, done, seconds, what):
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                self.fail(f"{what}\n{self.log()}")
            time.sleep(0.1)

    def wait_for_end(self):
        self.wait(lambda: self.slurm.run("squeue", "-h").stdout.strip() == "", 1200, "no end")

    def steps(self):
        """The running steps of the job: name to id."""
        shown = self.slurm.run("squeue", "--steps", "-h", "-o", "%j %i").stdout
        return dict(line.split() for line in shown.splitlines())

    def ranks(self, run):
        """The processes that train a run: rank to process id."""
        found = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
                if words[:2] != [str(pace_process.BINARY), "train"] or str(run) not in words:
                    continue
                variables = (entry / "environ").read_bytes().decode().split("\0")
            except OSError:
                continue
            found |= {int(text.partition("=")[2]): int(entry.name) for text in variables
                      if text.startswith("SLURM_PROCID=")}
        return found

    def wait_for_ranks(self, run, before=()):
        """The ranks once all of them are other processes than `before`."""
        found = {}

        def started():
            found.clear()
            found.update(self.ranks(run))
            return len(found) == NUM_RANKS and not set(found.values()) & set(before)
        self.wait(started, 300, "no ranks")
        return found

    def kill(self, run, victim):
        """Kills a rank, which ends the other one with one line; the process ids of all."""
        pids = self.wait_for_ranks(run)
        other = 1 - victim
        said = len(self.last_words(other))
        os.kill(pids[victim], signal.SIGKILL)
        began = time.monotonic()
        self.wait(lambda: not set(self.ranks(run).values()) & set(pids.values()), 120,
                  "the other rank did not end")
        took = time.monotonic() - began
        print(f"rank {victim} of {NUM_RANKS} killed: all ended after {took:.1f} s")
        if LONG:
            self.assertLess(took, NOTICED_S)
        # The step's output reaches the log through srun.
        self.wait(lambda: len(self.last_words(other)) > said, 60, "no line")
        self.assertEqual(len(self.last_words(other)), said + 1, self.log())
        return pids.values()

    def submit(self, script):
        job = self.slurm.run("sbatch", "--parsable", str(script))
        self.assertEqual(job.returncode, 0, job.stderr)
        return job.stdout.strip()

    def launch(self, *arguments):
        """Submits what `pace launch slurm` writes: two engines and two ranks."""
        port = pace_process.free_ports(3)
        written = pace_process.run(
            "launch", "slurm", "tiny", "launch.engine=pace", "cluster.rollout_gpus=2",
            f"cluster.trainer_gpus={NUM_RANKS}", f"launch.pace={pace_process.BINARY}",
            f"launch.port={port}", f"launch.master_port={port + 2}", "run.evaluate_every=0",
            *arguments, "--out", self.job_folder)
        self.assertEqual(written.returncode, 0, written.stderr)
        self.assertIn(f"trainer     {NUM_RANKS} ranks", written.stdout)
        script = self.job_folder / "job.sbatch"
        self.assertIn(f"sbatch {script}", written.stdout)
        return self.submit(script)

    def check_completed(self, job):
        shown = self.slurm.run("scontrol", "show", "job", job).stdout
        self.assertIn("JobState=COMPLETED", shown, self.log())

    def check_trained_once(self, num_steps, num_groups):
        """Every step once, every group at most once, and a replay gives the same verdicts."""
        run = self.job_folder / "run"
        self.assertEqual([row["step"] for row in self.rows(run)], list(range(num_steps)),
                         self.log())
        trained = [line["group"]
                   for line in pace_process.json_lines((run / "decisions.jsonl").read_text())
                   if line["verdict"] == "admit"]
        self.assertEqual(len(trained), num_steps * num_groups)
        self.assertEqual(len(set(trained)), len(trained))
        replayed = pace_process.run("replay", run / "events.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertTrue((run / "checkpoints" / f"step-{num_steps:06d}").exists())

    def test_a_job_trains_and_survives_the_loss_of_an_engine(self):
        job = self.launch(f"run.num_steps={NUM_STEPS}")
        self.wait(lambda: self.num_steps() >= 3, 1200, "no steps")
        steps = self.steps()
        self.assertLessEqual({"engine-0", "engine-1", "trainer"}, set(steps), steps)
        self.assertEqual(len(self.ranks(self.job_folder / "run")), NUM_RANKS)
        done_before = self.num_steps()
        self.slurm.run("scancel", steps["engine-1"])
        self.wait_for_end()
        log = self.log()
        self.assertIn("engine 1 ended with status", log)
        self.assertIn("its groups start again", log)
        self.assertLess(done_before, NUM_STEPS)
        self.check_trained_once(NUM_STEPS, 12)
        self.check_completed(job)

    def test_a_job_goes_on_after_the_loss_of_each_rank_and_after_a_requeue(self):
        run = self.job_folder / "run"
        num_steps = 16
        job = self.launch(*SMALL, f"run.num_steps={num_steps}", "run.checkpoint_every=2")
        self.wait(lambda: self.num_steps() >= 3, 1200, "no steps")
        before = self.kill(run, 1)
        before = self.wait_for_ranks(run, before).values()
        self.wait(lambda: self.num_steps() >= 6, 1200, "no steps after the first kill")
        self.assertEqual(self.slurm.run("scontrol", "requeue", job).returncode, 0)
        self.wait_for_ranks(run, before)
        self.wait(lambda: self.num_steps() >= 9, 1200, "no steps after the requeue")
        self.kill(run, 0)
        self.wait_for_end()
        log = self.log()
        self.assertEqual(log.count("the trainer ended with status"), 2, log)
        self.check_trained_once(num_steps, 4)
        self.check_completed(job)

    def submit_lab(self, name, *arguments):
        """A job of two ranks that puts itself back into the queue if they fail."""
        self.job_folder.mkdir(exist_ok=True)
        script = self.folder / f"{name}.sbatch"
        command = [pace_process.BINARY, "train", "tiny", "--driver", "lab", "--method", "sync",
                   *SMALL, *arguments, "--out", self.job_folder / name]
        script.write_text(f"""#!/bin/bash
#SBATCH --ntasks={NUM_RANKS}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={self.job_folder}/{name}.log
srun --kill-on-bad-exit=1 {" ".join(map(str, command))} && exit
[ "${{SLURM_RESTART_COUNT:-0}}" -lt {NUM_RANKS} ] && scontrol requeue "$SLURM_JOB_ID"
exit 1
""")
        return self.submit(script)

    def test_a_requeued_job_of_the_lab_ends_in_the_bits_of_one_that_was_not(self):
        more = ["run.num_steps=8", "run.checkpoint_every=2", "train.shard=full"]
        straight = self.submit_lab("straight", *more)
        self.wait_for_end()
        self.check_completed(straight)
        gradients = [row["train/grad_norm"] for row in self.rows(self.job_folder / "straight")]
        self.assertLessEqual(gradients.count(0), len(gradients) // 4, "it hardly learns")
        job = self.submit_lab("requeued", *more)
        run = self.job_folder / "requeued"
        before = []
        for victim, step in enumerate([3, 6]):
            self.wait_for_ranks(run, before)
            self.wait(lambda least=step: self.num_steps(run) >= least, 600, "no steps")
            before = self.kill(run, victim)
        self.wait_for_end()
        self.check_completed(job)
        shown = self.slurm.run("scontrol", "show", "job", job).stdout
        self.assertIn(f"Restarts={NUM_RANKS}", shown)
        for part in ("model.safetensors", "optimizer.safetensors"):
            files = [self.job_folder / name / "checkpoints/step-000008" / part
                     for name in ("straight", "requeued")]
            self.assertEqual(files[0].read_bytes(), files[1].read_bytes(), part)


if __name__ == "__main__":
    unittest.main()
