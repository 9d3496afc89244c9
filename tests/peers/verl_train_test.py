"""verl 0.9.1, unmodified, with PACE: runs on the CPU with a two-rank FSDP2 actor and two replicas of
`pace serve`."""

import itertools
import json
import pathlib
import subprocess
import tempfile
import unittest

import verl_process
from verl_process import BATCH, GROUP

import pace_process

NUM_STEPS = 20
MIN_TOKENS = 32
# On-policy, engine and actor compute the same probabilities in float32.
TOLERANCE = 1e-6
UNMODIFIED = "fits     verl: its 513 files are those of the release"


def setUpModule():
    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory()))
    verl_process.unpack_package(folder / "package")
    verl_process.make_assets(folder / "assets")
    globals()["FOLDER"] = folder


def start(name, *overrides, **options):
    return verl_process.VerlRun(FOLDER / name, FOLDER / "package", FOLDER / "assets",
                                f"trainer.total_training_steps={NUM_STEPS}", *overrides, **options)


def check(test):
    done = subprocess.run([verl_process.PYTHON, "-m", "pace.verl", "check"], capture_output=True,
                          text=True, cwd=FOLDER, env={"PYTHONPATH": str(FOLDER / "package")})
    test.assertIn(UNMODIFIED, done.stdout, done.stdout + done.stderr)


def trace_of(record):
    return [json.loads(line) for line in (record / "trace.jsonl").read_text().splitlines()]


class VerlTrainTest(unittest.TestCase):
    def finish(self, run):
        self.addCleanup(run.end)
        self.assertEqual(run.wait(), 0, run.tail())
        rows = run.rows()
        self.assertEqual([row["step"] for row in rows], list(range(1, NUM_STEPS + 1)))
        return rows

    def test_on_policy_the_engine_records_the_probabilities_of_the_actor(self):
        rows = self.finish(start("on_policy", "trainer.v1.separate_async.num_warmup_batches=0"))
        lags = [row["pace/staleness/lag/max"] for row in rows]
        self.assertEqual(lags, [0] * NUM_STEPS)
        differences = [row["training/rollout_probs_diff_max"] for row in rows]
        print(f"\nlargest difference of a probability at lag 0: {max(differences):.1e}")
        self.assertLess(max(differences), TOLERANCE)
        # Weights do change: the test can fail.
        self.assertGreater(max(row["actor/grad_norm"] for row in rows), 0)

    def test_asynchronous_training_with_admission(self):
        check(self)
        run = start("asynchronous", "trainer.v1.separate_async.num_warmup_batches=4",
                    "+trainer.v1.sampler.sampler_kwargs.settings.admission.min_observations=8",
                    "+trainer.v1.sampler.sampler_kwargs.settings.admission.beta=0.5", slow=0.15)
        rows = self.finish(run)
        self.check_responses(run)
        self.check_supply(run, rows)
        self.check_record(run)
        check(self)

    def check_responses(self, run):
        """Every trained response has segments, and a score if it was interrupted late enough."""
        draws = [line for line in trace_of(run.record) if "group" in line]
        num_interrupted = num_scored = 0
        for draw in draws:
            self.assertEqual(len(draw["members"]), GROUP)
            for member in draw["members"]:
                self.assertTrue(member["segments"])
                before = list(itertools.accumulate(n for _, n in member["segments"]))[:-1]
                num_interrupted += bool(before)
                if before and before[-1] >= MIN_TOKENS:
                    self.assertIsNotNone(member["prefix_score"], member)
                    num_scored += 1
        print(f"\n{len(draws)} groups drawn; {num_interrupted} responses interrupted, "
              f"{num_scored} of them after {MIN_TOKENS} tokens")
        self.assertGreater(num_scored, 0)

    def check_supply(self, run, rows):
        """Refills equal evictions; no step waits while enough groups are there."""
        self.assertEqual(rows[-1]["pace/unknown_versions_total"], 0)
        rejected = sum(row["pace/rejected"] for row in rows)
        evicted = sum(row.get("training/off_policy/evicted_samples", 0) for row in rows)
        self.assertGreater(rejected, 0)
        self.assertEqual(rows[-1]["pace/refilled_total"], rejected)
        self.assertEqual(evicted, rejected)
        for row in rows:
            if row["pace/occupancy"] - row["pace/rejected"] >= BATCH:
                self.assertEqual(row["pace/wait_seconds"], 0, row["step"])
        decisions = [json.loads(line)
                     for line in (run.record / "decisions.jsonl").read_text().splitlines()]
        trained = [line["group"] for line in decisions if line["verdict"] == "admit"]
        self.assertEqual(len(trained), NUM_STEPS * BATCH)
        self.assertEqual(len(set(trained)), len(trained))

    def check_record(self, run):
        """`pace replay` gives the same verdicts, `pace report` a page."""
        replayed = pace_process.run("replay", run.record / "trace.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        again = {(line["group"], line["verdict"], line["reason"])
                 for line in pace_process.json_lines(replayed.stdout) if "group" in line}
        decisions = {(line["group"], line["verdict"], line["reason"]) for line in
                     map(json.loads, (run.record / "decisions.jsonl").read_text().splitlines())}
        self.assertEqual(again, decisions)
        page = FOLDER / "report.html"
        reported = pace_process.run("report", run.record, "--out", page)
        self.assertEqual(reported.returncode, 0, reported.stderr)
        self.assertIn("<svg", page.read_text())


if __name__ == "__main__":
    unittest.main()
