"""Runs of pace train that end before their time, by signals, locks, full disks and mistakes: what
they leave can be read and goes on, and a lab run ends as if nothing had happened.

PACE_LONG_TESTS=1 tries twenty random moments of each signal instead of a few."""

import collections
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import killed_run
import pace_process
from checkpoint_damage_test import relist
from small_run import SHAPE, SMALL

LONG = os.environ.get("PACE_LONG_TESTS") == "1"
MOMENTS = 20 if LONG else 2  # of each signal
STEPS = 120 if LONG else 24
RECORDS = ("metrics.jsonl", "decisions.jsonl", "events.jsonl", "trace.jsonl", "rollouts.jsonl",
           "responses.jsonl")


def wait_for(condition, process):
    deadline = time.monotonic() + pace_process.PATIENCE
    while not condition():
        if process.poll() is not None:
            raise AssertionError(process.communicate()[1])
        if time.monotonic() > deadline:
            process.kill()
            raise AssertionError("nothing happened")
        time.sleep(0.02)


def steps_in(run):
    try:
        return (run / "metrics.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


class NoRunLostTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = cls.folder / "model"
        made = pace_process.run("sft", "tiny", *SMALL, *SHAPE, "sft.num_steps=1", "--fresh",
                                "--out", cls.model, cwd=cls.folder)
        assert made.returncode == 0, made.stderr

    def command(self, *arguments):
        return [str(pace_process.BINARY), "train", "tiny", *SMALL, f"policy.model={self.model}",
                *map(str, arguments)]

    def execute(self, command, **options):
        return subprocess.run(command, capture_output=True, text=True, cwd=self.folder,
                              timeout=pace_process.PATIENCE, check=False, **options)

    def train(self, *arguments):
        done = self.execute(self.command(*arguments))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def resume(self, run, *arguments, **options):
        return self.execute([str(pace_process.BINARY), "train", "--resume", str(run),
                             *map(str, arguments)], **options)

    def begin(self, *arguments):
        process = subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def assert_refused(self, done, *expected):
        self.assertEqual(done.returncode, 2, done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("pace: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        for words in expected:
            self.assertIn(words, lines[0])

    def assert_same_run(self, run, whole):
        for name in RECORDS:
            self.assertEqual((run / name).read_bytes(), (whole / name).read_bytes(), name)
        last = f"checkpoints/step-{STEPS:06d}"
        for part in ("model.safetensors", "optimizer.safetensors", "groups.bin", "in_flight.bin"):
            self.assertEqual((run / last / part).read_bytes(), (whole / last / part).read_bytes(),
                             part)

    def assert_trained_once(self, run):
        """No group is trained twice, no step is missing, and a replay gives every verdict."""
        decisions = pace_process.json_lines((run / "decisions.jsonl").read_text())
        trained = [line["group"] for line in decisions if line["verdict"] == "admit"]
        self.assertEqual(len(trained), STEPS * 3)
        self.assertEqual(len(set(trained)), len(trained))
        rows = pace_process.json_lines((run / "metrics.jsonl").read_text())
        self.assertEqual([row["step"] for row in rows], list(range(STEPS)))
        recorded = [(line["group"], line["verdict"]) for line in decisions]
        for name in ("trace.jsonl", "events.jsonl"):
            replayed = pace_process.run("replay", run / name)
            self.assertEqual(replayed.returncode, 0, replayed.stderr)
            verdicts = [(line["group"], line["verdict"])
                        for line in pace_process.json_lines(replayed.stdout) if "verdict" in line]
            self.assertEqual(verdicts, recorded, name)

    # --- signals ---

    def ended_runs(self, driver, longest):
        """Finished runs that were ended MOMENTS times by each signal, all together."""
        chance = random.Random(2)
        signals = [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT] * MOMENTS
        chance.shuffle(signals)
        number = 0
        while signals:
            run = self.folder / f"{driver}-ended-{number}"
            number += 1
            first = self.command(f"run.num_steps={STEPS}", "run.checkpoint_every=5",
                                 "record.level=full", "--driver", driver, "--out", run)
            moments = [(chance.uniform(0.1, longest), number) for number in signals]
            signals = signals[killed_run.finish(first, run, moments, self.folder):]
            yield run

    def test_a_lab_run_that_is_ended_at_random_is_the_run_that_was_not(self):
        whole = self.folder / "lab-whole"
        begun = time.monotonic()
        self.train(f"run.num_steps={STEPS}", "run.checkpoint_every=5", "record.level=full",
                   "--driver", "lab", "--out", whole)
        for run in self.ended_runs("lab", time.monotonic() - begun):
            self.assert_same_run(run, whole)

    def test_a_runtime_run_that_is_ended_at_random_trains_no_group_twice(self):
        whole = self.folder / "runtime-whole"
        begun = time.monotonic()
        self.train(f"run.num_steps={STEPS}", "run.checkpoint_every=5", "record.level=full",
                   "--out", whole)
        for run in self.ended_runs("runtime", time.monotonic() - begun):
            self.assert_trained_once(run)

    def test_a_stop_at_any_step_leaves_no_trace_in_the_lab(self):
        whole = self.folder / "lab-unstopped"
        settings = [f"run.num_steps={STEPS}", "run.checkpoint_every=3", "record.level=full",
                    "checkpoint.keep=1", "--driver", "lab"]
        self.train(*settings, "--out", whole)
        run = self.folder / "lab-stopped"
        process = self.begin(*settings, "--out", run)
        wait_for(lambda: steps_in(run) >= 4, process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=pace_process.PATIENCE)
        if process.returncode == killed_run.STOPPED:
            self.assertIn(f"pace train --resume {run}", errors)
            done = self.resume(run)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_run(run, whole)

    def test_each_signal_saves_and_says_how_to_go_on(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            run = self.folder / f"stopped-{number.name}"
            process = self.begin("run.num_steps=100000", "run.checkpoint_every=0", "--out", run)
            wait_for(lambda run=run: steps_in(run) >= 1, process)
            process.send_signal(number)
            out, errors = process.communicate(timeout=pace_process.PATIENCE)
            self.assertEqual(process.returncode, killed_run.STOPPED, errors)
            steps = steps_in(run)
            self.assertIn(f"stopped by {number.name} after step {steps} of 100000", errors)
            self.assertIn(f"pace train --resume {run}", errors)
            saved = run / "checkpoints" / f"step-{steps:06d}"
            self.assertIn(f"model: {saved}", out)
            self.assertTrue((saved / "model.safetensors").exists())
        done = self.resume(run, f"run.num_steps={steps + 2}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(steps_in(run), steps + 2)
        self.assertIn(f"{steps + 2} steps in", done.stdout)
        self.assertIn("2 of them since it was resumed", done.stdout)

    def resume_without_the_step_under_way(self, run, last):
        """As a checkpoint of an earlier version: the step's number is right, its sums are partial."""
        earlier = self.folder / "earlier"
        shutil.copytree(run, earlier)
        checkpoint = earlier / "checkpoints" / f"step-{steps_in(run):06d}"
        saved = json.loads((checkpoint / "run.json").read_text())
        del saved["under_way"]
        (checkpoint / "run.json").write_text(json.dumps(saved) + "\n")
        relist(checkpoint, "run.json")
        done = self.resume(earlier, f"run.num_steps={last}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("skipped", done.stderr)
        rows = pace_process.json_lines((earlier / "metrics.jsonl").read_text())
        self.assertEqual([row["step"] for row in rows], list(range(last)))

    def test_a_stop_while_a_step_waits_for_groups_keeps_what_it_has_drawn(self):
        run = self.folder / "waiting"
        # A slow reward: most of a step is waiting for its groups.
        reward = self.folder / "slow.py"
        reward.write_text("import time\n\n\ndef score(response):\n    time.sleep(0.03)\n"
                          "    return len(response) % 3 / 2\n")
        process = self.begin("run.num_steps=100000", "run.checkpoint_every=0",
                             f"task.verifier=python:{reward}:score", "record.level=full",
                             "--out", run)
        wait_for(lambda: steps_in(run) >= 2, process)
        chance = random.Random(4)
        for _ in range(40):
            time.sleep(chance.uniform(0, 0.1))  # into the step after the last one recorded
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=pace_process.PATIENCE)
            self.assertEqual(process.returncode, killed_run.STOPPED, errors)
            saved = run / "checkpoints" / f"step-{steps_in(run):06d}" / "run.json"
            if "under_way" in json.loads(saved.read_text()):
                break
            process = subprocess.Popen(
                [str(pace_process.BINARY), "train", "--resume", str(run)], cwd=self.folder,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            steps = steps_in(run)
            wait_for(lambda steps=steps: steps_in(run) > steps, process)
        else:
            self.fail("no stop found a step that waited")
        last = steps_in(run) + 2
        self.resume_without_the_step_under_way(run, last)
        done = self.resume(run, f"run.num_steps={last}")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = pace_process.json_lines((run / "metrics.jsonl").read_text())
        self.assertEqual([row["step"] for row in rows], list(range(last)))
        decisions = pace_process.json_lines((run / "decisions.jsonl").read_text())
        drawn = collections.Counter(line["step"] for line in decisions)
        self.assertEqual([row["admission/offered"] for row in rows],
                         [drawn[step] for step in range(last)])
        replayed = pace_process.run("replay", run / "trace.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertEqual([(line["group"], line["verdict"])
                          for line in pace_process.json_lines(replayed.stdout)
                          if "verdict" in line],
                         [(line["group"], line["verdict"]) for line in decisions])

    def test_a_second_signal_ends_it_at_once_and_the_run_still_goes_on(self):
        run = self.folder / "cut-short"
        process = self.begin("run.num_steps=100000", "run.checkpoint_every=2", "--out", run)
        wait_for(lambda: (run / "checkpoints").exists() and
                 any((run / "checkpoints").glob("step-*")), process)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate()
        self.assertIn(process.returncode, (killed_run.STOPPED, 128 + signal.SIGINT))
        done = self.resume(run, f"run.num_steps={steps_in(run) + 2}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path.name for path in (run / "checkpoints").iterdir()
                          if path.name.startswith(".partial")], [])

    # --- what is saved ---

    def test_the_last_step_is_saved_whatever_the_settings_say(self):
        for driver in ("lab", "runtime"):
            run = self.folder / f"unsaved-{driver}"
            done = self.train("run.num_steps=2", "run.checkpoint_every=0", "--driver", driver,
                              "--out", run)
            self.assertIn(f"model: {run}/checkpoints/step-000002", done.stdout)
            self.assertTrue((run / "checkpoints/step-000002/model.safetensors").exists())
            done = self.resume(run, "run.num_steps=4")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(steps_in(run), 4)
            self.assertIn("num_steps: 4\n", (run / "config.yaml").read_text())
            self.assertTrue((run / "checkpoints/step-000004/model.safetensors").exists())

    def test_a_run_that_was_made_longer_replays(self):
        run = self.folder / "longer"
        self.train("run.num_steps=4", "run.checkpoint_every=3", "record.level=full", "--out", run)
        done = self.resume(run, "run.num_steps=9", "run.checkpoint_every=2", "run.evaluate_every=4")
        self.assertEqual(done.returncode, 0, done.stderr)
        decisions = pace_process.json_lines((run / "decisions.jsonl").read_text())
        replayed = pace_process.run("replay", run / "events.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        verdicts = [line["verdict"] for line in pace_process.json_lines(replayed.stdout)
                    if "verdict" in line]
        self.assertEqual(verdicts, [line["verdict"] for line in decisions])

    def test_a_killed_run_can_be_read(self):
        run = self.folder / "killed"
        process = self.begin("run.num_steps=100000", "run.checkpoint_every=0", "record.level=full",
                             "--out", run)
        wait_for(lambda: steps_in(run) >= 3, process)
        report = pace_process.run("report", run, "--out", self.folder / "live.html")
        self.assertEqual(report.returncode, 0, report.stderr)
        process.kill()
        process.communicate()
        for name in RECORDS:
            self.assertGreater((run / name).stat().st_size, 0, name)
        rows = pace_process.json_lines((run / "decisions.jsonl").read_text().rsplit("\n", 1)[0])
        self.assertGreaterEqual(len({row["step"] for row in rows}), 3)
        report = pace_process.run("report", run)
        self.assertEqual(report.returncode, 0, report.stderr)

    # --- one process at a time ---

    def test_a_second_process_is_refused(self):
        run = self.folder / "locked"
        process = self.begin("run.num_steps=100000", "run.checkpoint_every=1", "--out", run)
        wait_for(lambda: steps_in(run) >= 2, process)
        self.assert_refused(self.resume(run), f"process {process.pid}", str(run))
        self.assert_refused(self.execute(self.command("--out", run)), "already holds a run")
        process.kill()
        process.communicate()
        done = self.resume(run, f"run.num_steps={steps_in(run) + 1}")
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = [row["step"] for row in pace_process.json_lines((run / "metrics.jsonl").read_text())]
        self.assertEqual(steps, list(range(len(steps))))

    # --- what may change ---

    def test_a_resumed_run_keeps_its_settings(self):
        run = self.folder / "settings"
        self.train("run.num_steps=2", "run.checkpoint_every=1", "--driver", "lab", "--out", run)
        for change, key in (("train.learning_rate=0.5", "train.learning_rate = 0.5"),
                            ("run.seed=7", "run.seed = 7"),
                            ("task.kind=arithmetic", "task.kind"),
                            ("batch.group_size=2", "batch.group_size = 2")):
            self.assert_refused(self.resume(run, "run.num_steps=4", change), key)
        self.assert_refused(self.resume(run, "tiny"), "its own settings")
        self.assert_refused(self.resume(run, "run.num_steps=1"), "run.num_steps = 1")
        config = (run / "config.yaml").read_text()
        self.assertIn("seed: 1\n", config)
        (run / "config.yaml").write_text(config.replace("seed: 1\n", "seed: 2\n", 1))
        self.assert_refused(self.resume(run), "run.seed = 2", "settings.yaml has 1")
        (run / "config.yaml").write_text(config)
        done = self.resume(run, "run.num_steps=3", "checkpoint.keep=1", "runtime.stall_s=9")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(steps_in(run), 3)

    def test_another_version_is_said(self):
        run = self.folder / "version"
        self.train("run.num_steps=1", "--driver", "lab", "--out", run)
        saved = run / "checkpoints/step-000001"
        text = (saved / "run.json").read_text()
        commit = text.split('"commit":"')[1].split('"')[0]
        (saved / "run.json").write_text(text.replace(commit, "0" * len(commit)))
        relist(saved, "run.json")
        done = self.resume(run, "run.num_steps=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        notes = [line for line in done.stderr.splitlines() if "was written by pace" in line]
        self.assertEqual(len(notes), 1, done.stderr)
        self.assertIn("0" * len(commit), notes[0])

    # --- before work begins ---

    def test_what_can_be_checked_is_checked_before_anything_is_made(self):
        target = self.folder / "never"
        (self.folder / "file").write_text("")
        bad = self.folder / "bad.jsonl"
        bad.write_text("{\"nothing\": 1}\n")
        for driver, change, expected in (
                ("runtime", ["task.kind=dataset", "task.file=/nowhere.jsonl"], "/nowhere.jsonl"),
                ("lab", ["task.kind=dataset", f"task.file={bad}"], "bad.jsonl"),
                ("runtime", ["task.kind=dataset", f"task.file={bad}", "task.verifier=mine"],
                 "task.verifier"),
                ("lab", ["task.benchmarks=/nowhere.jsonl"], "/nowhere.jsonl"),
                ("runtime", ["generation.max_tokens=100000"], "generation.max_tokens"),
                ("lab", ["cluster.failure_every_s=10"], "cluster.failure_every_s"),
                ("runtime", ["train.loss=nothing"], "nothing")):
            done = self.execute(self.command(*change, "--driver", driver, "--out", target))
            self.assert_refused(done, expected)
            self.assertNotIn("run directory", done.stderr)
            self.assertFalse(target.exists(), change)
        for out in (self.folder / "file/run", self.folder / "file"):
            done = self.execute(self.command("--out", out))
            self.assert_refused(done, "not a directory")
            made = pace_process.run("sft", "tiny", *SMALL, *SHAPE, "sft.num_steps=1000000",
                                    "--fresh", "--out", out, cwd=self.folder)
            self.assert_refused(made, "not a directory")

    # --- disks ---

    def test_a_disk_that_is_full_at_the_first_checkpoint_loses_nothing(self):
        whole = self.folder / "disk-whole"
        settings = ["run.num_steps=4", "run.checkpoint_every=2", "record.level=full",
                    "--driver", "lab"]
        self.train(*settings, "--out", whole)
        saved = whole / "checkpoints/step-000002"
        largest = max(path.stat().st_size for path in saved.iterdir())
        records = max((whole / name).stat().st_size for name in RECORDS)
        self.assertLess(records, largest)
        run = self.folder / "disk"
        # A file too large is what a full disk is: the write fails.
        full = self.execute(
            self.command(*settings, "--out", run),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest - 1, largest - 1)))
        self.assert_refused(full, "File too large")
        self.assertIn(f"pace train --resume {run}", full.stderr)
        self.assertEqual(list((run / "checkpoints").iterdir()), [])
        done = self.resume(run)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("begins again", done.stderr)
        for name in RECORDS:
            self.assertEqual((run / name).read_bytes(), (whole / name).read_bytes(), name)


if __name__ == "__main__":
    unittest.main()
