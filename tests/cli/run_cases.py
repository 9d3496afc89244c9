"""Test cases whose tests train small runs, for the tests beside this file."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import killed_run
import pace_process
import small_run


def processes_with(mark, file="cmdline"):
    """What runs with these bytes in its command line, or in its environment, but for this one."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != os.getpid() and mark in (entry / file).read_bytes():
                found.append((entry / "cmdline").read_bytes()[-200:])
        except OSError:
            continue
    return found


class TrainCase(unittest.TestCase):
    """Runs of `pace train WORDS` in a folder of the class."""

    WORDS = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def command(self, name, *arguments):
        return [str(pace_process.BINARY), "train", *self.WORDS, *map(str, arguments),
                "--out", str(self.folder / name)]

    def train(self, name, *arguments):
        """How the command ended, and its run directory."""
        done = subprocess.run(self.command(name, *arguments), capture_output=True, text=True,
                              cwd=self.folder, timeout=pace_process.PATIENCE, check=False)
        return done, self.folder / name

    def trained(self, name, *arguments):
        """The directory of a run that succeeds."""
        done, run = self.train(name, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return run

    def killed(self, name, moments, *arguments):
        """A run that was ended at these moments and went on, and how often it was."""
        run = self.folder / name
        return run, killed_run.finish(self.command(name, *arguments), run, moments, self.folder)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def rows(self, run, name="metrics.jsonl"):
        return pace_process.json_lines((run / name).read_text())

    def assert_same(self, one, other, names):
        for name in names:
            self.assertEqual((one / name).read_bytes(), (other / name).read_bytes(), name)


class TinyCase(TrainCase):
    """Runs of a network of random weights."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        model = cls.folder / "model"
        done = pace_process.run("sft", "tiny", *small_run.SMALL, *small_run.SHAPE,
                                "sft.num_steps=3", "--fresh", "--out", model, cwd=cls.folder)
        assert done.returncode == 0, done.stderr
        cls.WORDS = ("tiny", *small_run.SMALL, f"policy.model={model}")

    def tearDown(self):
        self.assertEqual(processes_with(str(self.folder).encode()), [])


class RetoolCase(TrainCase):
    """Runs whose responses use the tool, where the machine has what isolates programs."""

    WORDS = ("tiny-retool", *small_run.RETOOL)

    @classmethod
    def setUpClass(cls):
        done = pace_process.run("eval", *cls.WORDS, "task.held_out_problems=1")
        if done.returncode != 0:
            raise unittest.SkipTest(f"no sandbox here: {done.stderr}")
        super().setUpClass()
