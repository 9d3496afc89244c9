"""A job that `pace launch slurm` wrote, on a Slurm of one node: it trains, and survives the loss of
an engine. Skipped where Slurm (slurmd, slurmctld, munge) is not installed."""

import json
import pathlib
import tempfile
import time
import unittest

import pace_process
import slurm_node

NUM_STEPS = 20


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
        return "".join(path.read_text(errors="replace")[-4000:]
                       for path in sorted(self.job_folder.rglob("*.log")))

    def num_steps(self):
        path = self.job_folder / "run" / "metrics.jsonl"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def wait(self, done, seconds, what):
        deadline = time.monotonic() + seconds
        while not done():
            self.assertLess(time.monotonic(), deadline, f"{what}\n{self.log()}")
            time.sleep(0.1)

    def steps(self):
        """The running steps of the job: name to id."""
        shown = self.slurm.run("squeue", "--steps", "-h", "-o", "%j %i").stdout
        return dict(line.split() for line in shown.splitlines())

    def test_a_job_trains_and_survives_the_loss_of_an_engine(self):
        written = pace_process.run(
            "launch", "slurm", "tiny", "launch.engine=pace", "cluster.rollout_gpus=2",
            "cluster.trainer_gpus=1", f"launch.pace={pace_process.BINARY}",
            f"launch.port={pace_process.free_ports(2)}", f"run.num_steps={NUM_STEPS}",
            "run.evaluate_every=0",
            "--out", self.job_folder)
        self.assertEqual(written.returncode, 0, written.stderr)
        script = self.job_folder / "job.sbatch"
        self.assertIn(f"sbatch {script}", written.stdout)
        job = self.slurm.run("sbatch", "--parsable", str(script))
        self.assertEqual(job.returncode, 0, job.stderr)
        self.wait(lambda: self.num_steps() >= 3, 1200, "no steps")
        steps = self.steps()
        self.assertLessEqual({"engine-0", "engine-1", "trainer"}, set(steps), steps)
        done_before = self.num_steps()
        self.slurm.run("scancel", steps["engine-1"])
        self.wait(lambda: self.slurm.run("squeue", "-h").stdout.strip() == "", 1200, "no end")
        log = self.log()
        self.assertIn("engine 1 ended with status", log)
        self.assertIn("its groups start again", log)
        self.assertLess(done_before, NUM_STEPS)
        # Every step once, and every group trained at most once.
        rows = [json.loads(line)
                for line in (self.job_folder / "run" / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows], list(range(NUM_STEPS)), log)
        replayed = pace_process.run("replay", self.job_folder / "run" / "events.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertTrue((self.job_folder / "run/checkpoints" / f"step-{NUM_STEPS:06d}").exists())
        done = self.slurm.run("scontrol", "show", "job", job.stdout.strip())
        self.assertIn("JobState=COMPLETED", done.stdout)


if __name__ == "__main__":
    unittest.main()
