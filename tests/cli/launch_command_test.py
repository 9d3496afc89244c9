"""pace launch: what it writes, that it starts nothing, what it refuses; and a run that it wrote for
this machine."""

import pathlib
import socket
import stat
import subprocess
import tempfile
import unittest

import pace_process

IMAGE = ["launch.image=registry.example/pace:1", "launch.volume=shared"]


class LaunchCommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "job"

    def launch(self, *arguments):
        done = pace_process.run("launch", *arguments, "--out", self.out)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_files_of_each_launcher(self):
        for launcher, names, arguments in [
                ("slurm", ["job.sbatch", "run.yaml", "token"], []),
                ("local", ["run.sh", "run.yaml", "token"], []),
                ("kubernetes", ["pace.yaml"], IMAGE)]:
            with self.subTest(launcher=launcher):
                self.out = self.folder / launcher
                text = self.launch(launcher, "math-4b", *arguments)
                self.assertEqual(sorted(path.name for path in self.out.iterdir()), names)
                self.assertIn("engines     4 of 1 GPU each: vLLM, 256 responses at a time", text)
                self.assertIn("trainer     2 ranks, train.shard=optimizer", text)
                self.assertIn("memory      a trainer rank: ", text)
                for path in self.out.iterdir():
                    secret = path.name in ("token", "pace.yaml")
                    mode = stat.S_IMODE(path.stat().st_mode)
                    self.assertEqual(mode & 0o077 == 0, secret, path.name)
                script = self.out / names[0]
                if launcher != "kubernetes":
                    subprocess.run(["bash", "-n", script], check=True)
                    token = (self.out / "token").read_text().strip()
                    self.assertEqual(len(token), 48)
                    self.assertNotIn(token, script.read_text())

    def test_the_settings_that_it_writes_simulate_as_those_it_was_given(self):
        self.launch("slurm", "math-8b", "run.num_steps=10", "run.checkpoint_every=5")
        records = []
        for name, arguments in {
                "given": ["math-8b", "run.num_steps=10", "run.checkpoint_every=5"],
                "written": [self.out / "run.yaml"]}.items():
            done = pace_process.run("sim", *arguments, "--methods", "effective",
                                    "--out", self.folder / name)
            self.assertEqual(done.returncode, 0, done.stderr)
            records.append((self.folder / name / "effective/metrics.jsonl").read_text())
        self.assertEqual(records[0], records[1])
        self.assertEqual(len(records[0].splitlines()), 10)

    def test_a_method_is_applied(self):
        text = self.launch("slurm", "retool-4b", "--method", "async")
        self.assertIn("engines     2 of 1 GPU each", text)

    def test_what_it_refuses(self):
        full = self.folder / "full"
        full.mkdir()
        (full / "file").write_text("")
        model = self.folder / "model"
        model.mkdir()
        (model / "config.json").write_text(
            (pace_process.SOURCE / "models/tiny/config.json").read_text())
        for arguments, message in {
                ("slurm", "math-8b", "cluster.trainer_gpus=2"): "train.shard = full needs ",
                ("local", "math-8b"): "local has one",
                ("kubernetes", "math-8b"): "launch.image",
                ("slurm", "retool-4b", "--method", "sync"): "cluster.layout = colocated",
                ("slurm", "math-4b", f"policy.model={model}"): "model.num_layers = 36: ",
                ("slurm", "nothing"): "no preset or file named nothing"}.items():
            done = pace_process.run("launch", *arguments, "--out", self.out)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertFalse(self.out.exists())
        done = pace_process.run("launch", "slurm", "math-4b", "--out", full)
        self.assertIn("must be a new or an empty folder", done.stderr)

    def test_a_run_on_this_machine(self):
        self.launch("local", "tiny", "launch.engine=pace", "cluster.rollout_gpus=2",
                    f"launch.pace={pace_process.BINARY}", f"launch.port={pace_process.free_ports(2)}",
                    "run.num_steps=3", "run.evaluate_every=0")
        done = subprocess.run([self.out / "run.sh"], capture_output=True, text=True,
                              timeout=pace_process.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = (self.out / "run/metrics.jsonl").read_text().splitlines()
        self.assertEqual(len(rows), 3)
        self.assertNotIn("does not read", done.stderr)
        # Its engines have ended with it.
        for log in sorted((self.out / "logs").iterdir()):
            url = log.read_text().split(" at ")[1].split(" ")[0]
            host, port = url.removeprefix("http://").split(":")
            with socket.socket() as probe:
                self.assertNotEqual(probe.connect_ex((host, int(port))), 0, url)


if __name__ == "__main__":
    unittest.main()
