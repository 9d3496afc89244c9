"""verl with PACE whose processes are killed: the whole run, and engines in the middle of it."""

import json
import os
import pathlib
import re
import signal
import tempfile
import time
import unittest

import verl_process
from verl_process import BATCH

NUM_STEPS = 12
SAVED = 6


def setUpModule():
    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory()))
    verl_process.unpack_package(folder / "package")
    verl_process.make_assets(folder / "assets")
    globals()["FOLDER"] = folder


def start(name, *overrides, **options):
    return verl_process.VerlRun(
        FOLDER / name, FOLDER / "package", FOLDER / "assets",
        f"trainer.total_training_steps={NUM_STEPS}",
        "trainer.v1.separate_async.num_warmup_batches=4",
        "+trainer.v1.sampler.sampler_kwargs.settings.admission.min_observations=8",
        "+trainer.v1.sampler.sampler_kwargs.settings.admission.beta=0.5", *overrides, **options)


def decisions_of(run):
    return [json.loads(line)
            for line in (run.record / "decisions.jsonl").read_text().splitlines()]


def engines_of(run):
    """Process ids of the servers."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if len(command) > 2 and command[1] == b"serve" and str(FOLDER).encode() in command[2]:
            found.append(int(folder.name))
    return sorted(found)


class VerlFaultsTest(unittest.TestCase):
    def finish(self, run):
        self.assertEqual(run.wait(), 0, run.tail())

    def check_trained_once(self, run):
        trained = [d["group"] for d in decisions_of(run) if d["verdict"] == "admit"]
        self.assertEqual(len(trained), NUM_STEPS * BATCH)
        self.assertEqual(len(set(trained)), len(trained))

    def test_a_killed_run_continues_with_its_windows(self):
        run = start("killed", f"trainer.save_freq={SAVED}", "trainer.resume_mode=auto")
        self.addCleanup(run.end)
        run.wait_for_steps(SAVED + 2)
        run.kill()
        state = json.loads((run.folder / f"run/global_step_{SAVED}/pace.json").read_text())
        before = [d for d in decisions_of(run) if d["step"] < SAVED]

        again = start("killed", f"trainer.save_freq={SAVED}", "trainer.resume_mode=auto")
        self.addCleanup(again.end)
        self.finish(again)
        # The record holds each step once, and the first part is as it was.
        self.assertEqual([d for d in decisions_of(again) if d["step"] < SAVED], before)
        steps = [json.loads(line)["step"]
                 for line in (again.record / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(steps, list(range(NUM_STEPS)))
        self.check_trained_once(again)
        self.assertEqual(again.rows()[0]["step"], SAVED + 1)
        # Verdicts of the second part follow from the windows of the first: a replay of the whole
        # trace gives all of them. `state` was the session's at the checkpoint.
        import pace_process

        replayed = pace_process.run("replay", again.record / "trace.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        lines = pace_process.json_lines(replayed.stdout)
        self.assertEqual([(line["group"], line["verdict"], line["reason"], line["score"])
                          for line in lines if "group" in line],
                         [(d["group"], d["verdict"], d["reason"], d["score"])
                          for d in decisions_of(again)])
        plans = {line["step"]: line for line in lines if "group" not in line}
        for row in map(json.loads, (again.record / "metrics.jsonl").read_text().splitlines()):
            if "admission/budget" in row:
                self.assertEqual(plans[row["step"]]["budget"], row["admission/budget"])
        self.assertEqual(state["admission"]["step"], SAVED - 1)

    def test_killed_and_stopped_engines_are_replaced(self):
        run = start("engines", env={"PACE_HEALTH_SECONDS": "10"})
        self.addCleanup(run.end)
        run.wait_for_steps(2)
        killed = []
        for step, number in ((2, signal.SIGKILL), (4, signal.SIGSTOP), (6, signal.SIGKILL)):
            run.wait_for_steps(step)
            engines = [pid for pid in engines_of(run) if pid not in killed]
            self.assertEqual(len(engines), 2)
            # Some moment of the step, not its beginning.
            time.sleep(0.3 * len(killed))
            os.kill(engines[step % 2], number)
            killed.append(engines[step % 2])
            deadline = time.monotonic() + verl_process.PATIENCE
            while len([pid for pid in engines_of(run) if pid not in killed]) < 2:
                self.assertLess(time.monotonic(), deadline, run.tail())
                time.sleep(0.1)
        self.finish(run)
        replaced = re.findall(r"pace: replica \d: server lost \((\w+).*after ([\d.]+) s",
                              run.log.read_text(errors="replace"))
        print(f"\nengines replaced: {replaced}")
        self.assertEqual(len(replaced), 3)
        self.check_trained_once(run)


if __name__ == "__main__":
    unittest.main()
