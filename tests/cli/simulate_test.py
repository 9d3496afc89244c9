"""pace sim from end to end: the files it writes, their replay, their repetition."""

import json
import pathlib
import tempfile
import unittest

import pace_process

STEPS = 40


class SimulateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.out = cls.folder / "first"
        cls.done = cls.simulate(cls.out)

    @classmethod
    def simulate(cls, out, *more):
        return pace_process.run("sim", "small", f"run.num_steps={STEPS}", "record.level=full",
                                "--methods", "sync,async,raw,effective,stale-1", "--out", out,
                                *more, cwd=cls.folder)

    def runs(self, out=None):
        return sorted(path.parent for path in (out or self.out).glob("*/manifest.json"))

    def test_prints_a_table_and_the_path_of_the_report(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        lines = self.done.stdout.splitlines()
        self.assertEqual(len(lines), 6)
        self.assertTrue(lines[0].startswith("method"))
        self.assertIn(f"report: {self.out}/report.html", self.done.stderr)
        self.assertGreater((self.out / "report.html").stat().st_size, 10000)

    def test_every_run_is_whole(self):
        self.assertEqual([run.name for run in self.runs()],
                         ["async", "effective", "raw", "stale-1", "sync"])
        for run in self.runs():
            with self.subTest(run.name):
                rows = pace_process.json_lines((run / "metrics.jsonl").read_text())
                self.assertEqual([row["step"] for row in rows], list(range(STEPS)))
                for row in rows:
                    parts = sum(row[f"time/{part}"] for part in (
                        "wait_data", "train", "sync", "rescore_visible", "other"))
                    self.assertAlmostEqual(parts, row["time/step"], delta=1e-9 * parts)

    def test_replays_of_trace_and_events_give_the_recorded_verdicts(self):
        for run in self.runs():
            with self.subTest(run.name):
                self.expect_same_replays(run)

    def test_replays_agree_under_every_kind_of_trouble(self):
        for number, overrides in enumerate([
                ["cluster.failure_every_s=60", "cluster.restart_s=5"],
                ["supply.sync_interval=3"],
                ["pool.max_groups=9", "pool.draw_order=lowest_score"],
                ["pool.draw_order=newest", "admission.ties=fractional"],
                ["run.checkpoint_every=7", "run.evaluate_every=5"],
                ["admission.weight_scope=member", "admission.max_budget=1",
                 "admission.target_occupancy=0"],
                ["batch.num_groups=1", "batch.group_size=1", "supply.requeue=all"]]):
            out = self.folder / f"trouble-{number}"
            done = self.simulate(out, *overrides)
            self.assertEqual(done.returncode, 0, done.stderr)
            for run in self.runs(out):
                with self.subTest(run=run.name, overrides=overrides):
                    self.expect_same_replays(run)

    def expect_same_replays(self, run):
        decisions = pace_process.json_lines((run / "decisions.jsonl").read_text())
        self.assertGreaterEqual(len(decisions), STEPS)
        recorded = [(d["group"], d["verdict"], d["reason"], d["score"]) for d in decisions]
        for source in ("trace.jsonl", "events.jsonl"):
            done = pace_process.run("replay", run / source)
            self.assertEqual(done.returncode, 0, done.stderr)
            replayed = [(d["group"], d["verdict"], d["reason"], d["score"])
                        for d in pace_process.json_lines(done.stdout) if "group" in d]
            self.assertEqual(replayed, recorded)
            self.assertEqual(done.stderr, f"{len(recorded)} verdicts, all as recorded\n")

    def test_a_replay_goes_on_from_a_snapshot(self):
        out = self.folder / "saved"
        self.assertEqual(self.simulate(out, "run.checkpoint_every=10").returncode, 0)
        for run in self.runs(out):
            with self.subTest(run.name):
                whole = pace_process.run("replay", run / "events.jsonl").stdout
                rest = pace_process.run("replay", run / "events.jsonl", "--from",
                                        run / "checkpoints" / "20.json")
                self.assertEqual(rest.returncode, 0, rest.stderr)
                self.assertEqual(rest.stdout, whole[whole.index('{"step":20'):])

    def test_a_snapshot_that_does_not_fit_is_refused(self):
        out = self.folder / "refused"
        self.assertEqual(self.simulate(out, "run.checkpoint_every=10").returncode, 0)
        run = out / "effective"
        good = (run / "checkpoints" / "20.json").read_text()
        bad = self.folder / "bad.json"
        for what, text, word in [
                ("truncated", good[: len(good) // 2], "bad.json"),
                ("empty", "", "bad.json"),
                ("another version", good.replace('"format_version":1', '"format_version":9'),
                 "format_version"),
                ("wrong type", good.replace('"version":20', '"version":"20"'), "version"),
                ("unknown key", good.replace('"batch":', '"bach":1,"batch":'), "bach"),
                ("NaN", good.replace('"smoothed_rate":', '"smoothed_rate":NaN,"x":'),
                 "smoothed_rate"),
                ("negative", good.replace('"num_lost":0', '"num_lost":-1'), "num_lost"),
                ("huge", good.replace('"num_lost":0', '"num_lost":1e300'), "num_lost"),
                ("another run", good.replace('"batch":8', '"batch":9'), "batch")]:
            with self.subTest(what):
                self.assertNotEqual(text, good)
                bad.write_text(text)
                done = pace_process.run("replay", run / "events.jsonl", "--from", bad)
                self.assertEqual(done.returncode, 2, done.stdout[:200])
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(word, done.stderr)
                self.assertIn("bad.json", done.stderr)

    def test_the_same_seed_gives_the_same_bytes(self):
        again = self.folder / "again"
        self.assertEqual(self.simulate(again, "--jobs", "1").returncode, 0)
        for run in self.runs():
            for path in sorted(run.iterdir()):
                with self.subTest(f"{run.name}/{path.name}"):
                    self.assertEqual(path.read_bytes(),
                                     (again / run.name / path.name).read_bytes())

    def test_another_seed_gives_other_bytes(self):
        other = self.folder / "other"
        self.assertEqual(self.simulate(other, "run.seed=2").returncode, 0)
        self.assertNotEqual((self.out / "async" / "metrics.jsonl").read_bytes(),
                            (other / "async" / "metrics.jsonl").read_bytes())

    def test_a_directory_that_holds_a_run_is_not_overwritten(self):
        before = (self.out / "async" / "metrics.jsonl").read_bytes()
        done = self.simulate(self.out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("already holds a run", done.stderr)
        self.assertEqual((self.out / "async" / "metrics.jsonl").read_bytes(), before)

    def test_a_single_method_gets_its_own_directory(self):
        done = pace_process.run("sim", "small", "run.num_steps=3", "--methods", "raw", "--out",
                                self.folder / "deep" / "single")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "deep" / "single" / "raw" / "metrics.jsonl").exists())

    def test_overrides_may_stand_behind_the_options(self):
        done = pace_process.run("sim", "small", "--methods", "async", "run.num_steps=3",
                                "--sweep", "batch.num_groups=4,8", "supply.threshold=2",
                                "--json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_report_reads_what_sim_wrote(self):
        page = self.folder / "page.html"
        done = pace_process.run("report", self.out, "--out", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), str(page))

    def test_a_damaged_run_is_refused_or_noted(self):
        damaged = self.folder / "damaged"
        damaged.mkdir(exist_ok=True)
        for path in (self.out / "raw").iterdir():
            (damaged / path.name).write_bytes(path.read_bytes())
        events = (damaged / "events.jsonl").read_bytes()
        (damaged / "events.jsonl").write_bytes(events[: len(events) // 2])
        done = pace_process.run("replay", damaged / "events.jsonl")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("events.jsonl:", done.stderr)

    def test_resolved_settings_run_again_to_the_same_bytes(self):
        again = self.folder / "resolved"
        done = pace_process.run("sim", self.out / "effective" / "config.yaml", "--out", again)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((again / "metrics.jsonl").read_bytes(),
                         (self.out / "effective" / "metrics.jsonl").read_bytes())

    def test_a_sweep_names_the_best_setting(self):
        done = pace_process.run("sim", "small", "run.num_steps=30", "--sweep",
                                "admission.target_occupancy=4,8,16", "--json", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = pace_process.json_lines(done.stdout)
        self.assertEqual(len(cells), 3)
        self.assertIn("take admission.target_occupancy=", done.stderr)
        one_job = pace_process.run("sim", "small", "run.num_steps=30", "--sweep",
                                   "admission.target_occupancy=4,8,16", "--json", "--jobs", "1",
                                   cwd=self.folder)
        self.assertEqual(one_job.stdout, done.stdout)

    def test_a_sweep_keeps_its_results_and_a_page(self):
        arguments = ("sim", "small", "run.num_steps=10", "--methods", "pace,async", "--sweep",
                     "supply.threshold=2,4", "--json", "--out", self.folder / "sweeps" / "one")
        done = pace_process.run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = self.folder / "sweeps" / "one"
        self.assertEqual((out / "sweep.jsonl").read_text(), done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertIn("sweep-waiting", (out / "report.html").read_text())
        again = pace_process.run(*arguments)
        self.assertEqual(again.returncode, 2)
        self.assertIn("holds a sweep already", again.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
