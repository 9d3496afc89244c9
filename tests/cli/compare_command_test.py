"""pace compare: a small version of the main comparison keeps what must hold
before anything is learned; a kill loses no finished run; bad files are refused."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import pace_process

SMALL = """
base: tiny-cluster
set: [run.evaluate_every=0, run.num_steps=4]
seeds: 2
baseline: async
arms: [async, {name: pace, method: effective}]
"""


def compare(*arguments):
    return pace_process.run("compare", *arguments, cwd=pace_process.SOURCE)


def needs_commit(test):
    """Equal runs are recognized by the commit that made them."""
    version = pace_process.run("--version").stdout
    return unittest.skipIf("(unknown)" in version, "built outside a git checkout")(test)


class CompareCommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, text):
        path = self.folder / "small.yaml"
        path.write_text(text)
        return path

    @unittest.skipUnless(os.environ.get("PACE_LONG_TESTS"),
                         "PACE_LONG_TESTS=1 makes its 12 runs of 48 steps")
    def test_the_miniature_of_main_keeps_its_claims(self):
        run = compare("mini", "--strict", "--out", self.folder / "mini")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("claims: 6 hold, 0 do not, 0 undecided", run.stdout)

    def test_two_seeds_of_the_miniature_lie_inside_the_bounds_of_its_claims(self):
        text = (pace_process.SOURCE / "experiments/mini.yaml").read_text()
        shorter = text.replace("run.num_steps=48", "run.num_steps=24").replace("seeds: 4", "seeds: 2")
        self.assertIn("run.num_steps=24", shorter)
        self.assertIn("seeds: 2\n", shorter)
        run = compare(self.file(shorter), "--out", self.folder / "short")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, "claims: . hold, 0 do not, . undecided")
        rows = re.findall(r"\| ((?:[≥≤] [\d.]+(?:, )?)+) \| ([\d.]+) ± ", run.stdout)
        self.assertEqual(len(rows), 6, run.stdout)
        for bounds, mean in rows:
            for side, bound in re.findall(r"([≥≤]) ([\d.]+)", bounds):
                holds = float(mean) >= float(bound) if side == "≥" else float(mean) <= float(bound)
                self.assertTrue(holds, f"{mean} {side} {bound}: {run.stdout}")

    def test_a_killed_comparison_goes_on_and_ends_the_same(self):
        experiment = self.file(SMALL)
        whole = compare(experiment, "--out", self.folder / "whole")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        cut = self.folder / "cut"
        process = subprocess.Popen(
            [str(pace_process.BINARY), "compare", str(experiment), "--jobs", "1", "--out", str(cut)],
            cwd=pace_process.SOURCE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (cut / "cells.jsonl").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = len((cut / "cells.jsonl").read_text().splitlines())
        rest = compare(experiment, "--out", cut)
        self.assertEqual(rest.returncode, 0, rest.stderr)
        self.assertIn(f"{4 - done} runs to make, {done} there already", rest.stderr)
        self.assertEqual((cut / "cells.jsonl").read_text(),
                         (self.folder / "whole" / "cells.jsonl").read_text())

    def test_one_run_made_again_gives_the_same_line(self):
        experiment = self.file(SMALL)
        out = self.folder / "out"
        self.assertEqual(compare(experiment, "--out", out).returncode, 0)
        before = (out / "cells.jsonl").read_bytes()
        again = compare(experiment, "--out", out, "--cell", "pace.2", "--again")
        self.assertIn("1 runs to make", again.stderr)
        self.assertEqual((out / "cells.jsonl").read_bytes(), before)
        self.assertEqual(json.loads(before.splitlines()[3])["arm"], "pace")

    @needs_commit
    def test_a_run_of_the_same_settings_is_taken_from_another_comparison(self):
        experiment = self.file(SMALL)
        first = self.folder / "first"
        self.assertEqual(compare(experiment, "--out", first).returncode, 0)
        (self.folder / "other").mkdir()
        other = self.folder / "other" / "renamed.yaml"
        other.write_text(SMALL.replace("arms: [async,", "arms: [{name: supply-8, method: async}, m2po,")
                         .replace("baseline: async", "baseline: pace"))
        out = self.folder / "out"
        reused = compare(other, "--reuse", first, "--out", out)
        self.assertEqual(reused.returncode, 0, reused.stderr)
        self.assertIn("2 runs to make, 0 there already, 4 reused", reused.stderr)
        cells = {(cell["arm"], cell["seed"]): cell for cell in
                 map(json.loads, (out / "cells.jsonl").read_text().splitlines())}
        for cell in map(json.loads, (first / "cells.jsonl").read_text().splitlines()):
            name = "supply-8" if cell["arm"] == "async" else cell["arm"]
            self.assertEqual(cells[name, cell["seed"]], cell | {"arm": name})
        # Cells of another commit, or of one that is not known, are not taken.
        manifest = json.loads((first / "manifest.json").read_text())
        for change in ({"commit": "0" * 12}, {"machine": "Another Processor, 2 cores"},
                       {"mixed": True}):
            (first / "manifest.json").write_text(json.dumps(manifest | change))
            refused = compare(other, "--reuse", first, "--cell", "pace.1", "--out", self.folder / "no")
            self.assertIn("1 runs to make, 0 there already, 0 reused", refused.stderr)
            self.assertIn(f"{first}: not reused", refused.stderr)
            shutil.rmtree(self.folder / "no")
        nothing = compare(other, "--reuse", self.folder / "missing", "--out", self.folder / "no")
        self.assertEqual(nothing.returncode, 2)
        self.assertIn("missing/manifest.json", nothing.stderr)

    @needs_commit
    def test_the_manifest_says_where_cells_of_two_programs_lie_together(self):
        experiment, out = self.file(SMALL), self.folder / "out"
        self.assertEqual(compare(experiment, "--cell", "pace.1", "--out", out).returncode, 0)
        manifest = out / "manifest.json"
        made = json.loads(manifest.read_text())
        self.assertNotIn("mixed", made)
        compare(experiment, "--cell", "pace.2", "--out", out)
        self.assertEqual(json.loads(manifest.read_text()), made)
        manifest.write_text(json.dumps(made | {"commit": "0" * 12}))
        compare(experiment, "--cell", "async.1", "--out", out)
        self.assertEqual(json.loads(manifest.read_text()), made | {"mixed": True})
        compare(experiment, "--cell", "async.2", "--out", out)
        self.assertEqual(json.loads(manifest.read_text()), made | {"mixed": True})
        # All of them again.
        compare(experiment, "--again", "--out", out)
        self.assertEqual(json.loads(manifest.read_text()), made)

    def test_what_is_wrong_is_said_in_one_line(self):
        for text, says in [
            ("base: tiny\narms: [asink]\n", "method asink: must be one of"),
            ("base: tiny\narms: []\n", "arms: must be 1 to"),
            ("base: tiny\narms: [async]\nclaims: [{of: async, value: speed}]\n",
             "claims.value = speed: must be one of"),
            ("base: tiny\narms: [async]\nseed: 3\n", "unknown key seed"),
            ("base: tiny\narms: [{method: async, set: [run.num_stebs=3]}]\n", "run.num_stebs"),
            ("base: [\n", "not YAML"),
        ]:
            run = compare(self.file(text), "--out", self.folder / "bad")
            self.assertEqual(run.returncode, 2, text)
            self.assertIn(says, run.stderr)
            self.assertEqual(len(run.stderr.strip().splitlines()), 1, run.stderr)
            self.assertFalse((self.folder / "bad").exists())
        missing = compare("mane")
        self.assertIn("neither a file nor an experiment", missing.stderr)


if __name__ == "__main__":
    unittest.main()
