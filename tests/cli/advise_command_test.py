"""pace advise from end to end: text, JSON, run directories, errors."""

import pathlib
import tempfile
import unittest

import pace_process

TITLES = ["Sync", "Async 1", "Async 2", "Async 3", "Async 4", "Async 6", "Async 8", "PACE",
          "Just in time", "Lean"]


class AdviseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.text = pace_process.run("advise", "small", "--seeds", "2", cwd=cls.folder)
        cls.json = pace_process.run("advise", "small", "--seeds", "2", "--json", cwd=cls.folder)

    def candidates(self):
        self.assertEqual(self.json.returncode, 0, self.json.stderr)
        return pace_process.json_lines(self.json.stdout)

    def test_the_text_has_layout_table_and_advice(self):
        self.assertEqual(self.text.returncode, 0, self.text.stderr)
        lines = self.text.stdout.splitlines()
        self.assertIn("2 rollout GPUs (2 engines of 256 slots) and 1 trainer GPU", lines[0])
        self.assertIn("8 groups of 4 responses per step; 400 tokens on average", lines[1])
        self.assertTrue(lines[2].startswith("candidate"))
        table = lines[3 : 3 + len(TITLES)]
        self.assertEqual([row.split("  ")[0] for row in table], TITLES)
        rest = lines[3 + len(TITLES) :]
        self.assertLessEqual(len(rest), 10)
        for word in ("use: ", "why: ", "sure: 2 seeds"):
            self.assertEqual(sum(line.startswith(word) for line in rest), 1, (word, rest))

    def test_the_json_agrees_with_the_text(self):
        candidates = self.candidates()
        self.assertEqual([candidate["candidate"] for candidate in candidates], TITLES)
        best = [candidate for candidate in candidates if candidate["best"]]
        self.assertEqual(len(best), 1)
        self.assertIn(f"use:  {best[0]['candidate']}", self.text.stdout)
        marked = [line for line in self.text.stdout.splitlines() if line.endswith(" best")]
        self.assertEqual(len(marked), 1)
        self.assertTrue(marked[0].startswith(best[0]["candidate"]))

    def test_the_best_is_the_freshest_of_the_fast(self):
        candidates = self.candidates()
        times = [candidate["seconds_per_trained_token"] for candidate in candidates]
        limit = 1.02 * min(times)
        best = next(candidate for candidate in candidates if candidate["best"])
        for candidate, time in zip(candidates, times):
            # The limit is of a difference per seed; means agree with it to rounding.
            if abs(time - limit) > 1e-9 * limit:
                self.assertEqual(candidate["fast"], time < limit)
            if candidate["fast"] and not candidate["tied"]:
                self.assertLessEqual(best["lag"], candidate["lag"])
        self.assertEqual(candidates[0]["lag"], 0)
        self.assertGreater(candidates[6]["lag"], candidates[2]["lag"])

    def test_the_settings_of_a_candidate_give_its_run(self):
        for candidate in self.candidates():
            if candidate["candidate"] not in ("Async 2", "PACE"):
                continue
            done = pace_process.run(
                "sim", "small", *candidate["settings"], "compare.methods=",
                f"run.num_steps={candidate['steps']}", "--json", "--out",
                self.folder / candidate["candidate"])
            self.assertEqual(done.returncode, 0, done.stderr)
            run = pace_process.json_lines(done.stdout)[0]
            # One of the two seeds; the error is half their distance.
            self.assertAlmostEqual(run["seconds_per_step"], candidate["seconds_per_step"],
                                   delta=1.001 * candidate["seconds_per_step_error"])
            self.assertAlmostEqual(run["waiting"] + run["generation"], candidate["lag"],
                                   delta=1.001 * candidate["lag_error"])

    def test_a_larger_slowdown_allows_sync(self):
        done = pace_process.run("advise", "small", "--seeds", "1", "--slowdown", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("use:  Sync", done.stdout)
        self.assertIn("the spread is not known", done.stdout)

    def test_a_run_directory_stands_for_its_settings(self):
        run = self.folder / "run"
        done = pace_process.run("sim", "small", "run.num_steps=3", "compare.methods=", "--out", run)
        self.assertEqual(done.returncode, 0, done.stderr)
        again = pace_process.run("advise", run, "--seeds", "2", "--json")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout, self.json.stdout)

    def test_bad_input_gives_one_line(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for arguments, word in [
                ([empty], "config.yaml: not there"),
                (["smal"], "small"),
                (["small", "supply.treshold=1"], "supply.threshold"),
                (["small", "workload.max_tokens=9000000"], "workload.max_tokens"),
        ]:
            with self.subTest(arguments):
                done = pace_process.run("advise", *arguments)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(word, done.stderr)

    def test_options_out_of_range_are_refused(self):
        for option, value in (("--slowdown", "-1"), ("--seeds", "0")):
            done = pace_process.run("advise", "small", option, value)
            self.assertEqual(done.returncode, 2)
            self.assertIn(option, done.stderr)


if __name__ == "__main__":
    unittest.main()
