"""Learning on servers: held-out accuracy after 80 steps as with the engine in the process.

Three seeds each, the same settings, `pace serve` servers of the run's own against the engine in the
process. PACE_LONG_TESTS=1 runs it; PACE_LEARNING_STEPS and PACE_LEARNING_SEEDS make it shorter.
PACE_LEARNING_OUT names a folder that keeps the runs."""

import math
import os
import pathlib
import statistics
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "cli"))

import pace_process  # pylint: disable=wrong-import-position

NUM_STEPS = int(os.environ.get("PACE_LEARNING_STEPS", "80"))
NUM_SEEDS = int(os.environ.get("PACE_LEARNING_SEEDS", "3"))
# Student's t, two-sided 95 %, by degrees of freedom.
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}


def interval(values):
    """Mean and half width of the 95 % interval over seeds."""
    half = T95[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), half


@unittest.skipUnless(os.environ.get("PACE_LONG_TESTS") == "1",
                     f"PACE_LONG_TESTS=1 makes {2 * NUM_SEEDS} runs of {NUM_STEPS} steps")
class RemoteLearningTest(unittest.TestCase):
    def accuracy(self, folder, seed, *where):
        """Of the last evaluation, and its own half width, which is over problems."""
        done = pace_process.run("train", "tiny", f"run.num_steps={NUM_STEPS}", f"run.seed={seed}",
                                f"run.evaluate_every={NUM_STEPS}", "--method", "pace", *where,
                                "--out", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("is evaluated in this process", done.stderr)
        rows = pace_process.json_lines((folder / "eval.jsonl").read_text())
        self.assertEqual(rows[-1]["step"], NUM_STEPS)
        key = next(key for key in rows[-1] if "/mean@" in key and not key.endswith("half_width"))
        return rows[0][key], rows[-1][key], rows[-1][key + "_half_width"]

    def test_accuracy_on_servers_is_within_the_interval_of_the_process(self):
        kept = os.environ.get("PACE_LEARNING_OUT")
        out = pathlib.Path(kept or self.enterContext(tempfile.TemporaryDirectory()))
        ends = {"process": [], "servers": []}
        for seed in range(1, NUM_SEEDS + 1):
            for name, where in (("process", ["engine.count=2"]), ("servers", ["--fleet", 2])):
                start, end, half = self.accuracy(out / f"{name}-{seed}", seed, *where)
                print(f"seed {seed}, {name}: {start:.4f} -> {end:.4f} (+-{half:.4f} over problems)",
                      flush=True)
                ends[name].append(end)
        process, half = interval(ends["process"])
        servers = statistics.mean(ends["servers"])
        print(f"process {process:.4f} +- {half:.4f}, servers {servers:.4f}")
        self.assertLessEqual(abs(servers - process), half)


if __name__ == "__main__":
    unittest.main()
