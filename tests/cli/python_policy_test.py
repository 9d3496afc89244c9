"""Admission policies in Python: pace train, sim and replay with
admission.policy=python:FILE:CLASS."""

import os
import pathlib
import tempfile
import unittest

import killed_run
import pace_process
import run_cases

EXAMPLE = pace_process.SOURCE / "examples" / "python_policy" / "freshest_first.py"
FRESHEST = f"admission.policy=python:{EXAMPLE}:FreshestFirst"
FILES = ("metrics.jsonl", "decisions.jsonl", "events.jsonl", "rollouts.jsonl", "trace.jsonl")
LAB = ("--driver", "lab", "record.level=full")
KILLS = 4 if os.environ.get("PACE_LONG_TESTS") else 1

# Admits what is no staler than the groups it saw last: its state decides.
WINDOW = """
class Window:
    def __init__(self):
        self.seen = []
    def begin_step(self, step, occupancy, batch, served):
        self.step = step
    def judge(self, group):
        return len(self.seen) < 6 or group.lag(self.step) <= sum(self.seen) / len(self.seen)
    def observe(self, group, decision):
        self.seen = (self.seen + [decision.score])[-6:]
"""
FAULTS = """
import collections, os, signal, time
class Policy:
    def judge(self, group):
        return self.fault() if group.id == 5 else True
class Raises(Policy):
    def fault(self): raise ValueError("mine")
class Exits(Policy):
    def fault(self): os._exit(3)
class Sleeps(Policy):
    def fault(self): time.sleep(1000)
class Kills(Policy):
    def fault(self):
        assert os.getppid() == 0, "no namespace"
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(-1, signal.SIGKILL)
        return 1
class Nothing(Policy):
    def fault(self): return None
class Queue(Policy):
    def __init__(self): self.seen = collections.deque()
class Always:
    def judge(self, group): raise ValueError("mine")
class Broken:
    def __init__(self): raise ValueError("mine")
    def judge(self, group): return True
"""


class PolicyTest(run_cases.TinyCase):
    def test_freshest_first_in_the_lab_is_the_built_in_one(self):
        lab = (*LAB, "run.num_steps=6", "run.checkpoint_every=3")
        built_in = self.trained("built_in", *lab, "--method", "miles-4")
        python = self.trained("python", *lab, "pool.draw_order=lowest_score", "pool.max_groups=4",
                              FRESHEST)
        self.assertIn("FreshestFirst", (python / "config.yaml").read_text())
        self.assert_same(built_in, python, FILES)
        for step in ("step-000003", "step-000006"):
            self.assert_same(built_in / "checkpoints" / step, python / "checkpoints" / step,
                             ("model.safetensors", "optimizer.safetensors"))
        self.assertGreaterEqual(len(self.rows(python, "decisions.jsonl")), 18)
        self.assertIn("python:FreshestFirst", (python / "report.html").read_text())

    def test_a_run_that_was_killed_goes_on_with_the_state_of_its_policy(self):
        self.write("window.py", WINDOW)
        lab = (*LAB, "admission.policy=python:window.py:Window", "run.num_steps=8",
               "run.checkpoint_every=2")
        whole = self.trained("whole", *lab)
        verdicts = {row["verdict"] for row in self.rows(whole, "decisions.jsonl")}
        self.assertEqual(verdicts, {"admit", "reject"})
        moments = [killed_run.after_steps(self.folder / "killed", 3 + i) for i in range(KILLS)]
        killed, times = self.killed("killed", moments, *lab)
        self.assertGreater(times, 0)
        self.assert_same(whole, killed, FILES)

    def test_replay_runs_the_policy_again(self):
        self.write("window.py", WINDOW)
        run = self.trained("recorded", *LAB, "admission.policy=python:window.py:Window",
                           "run.num_steps=5")
        recorded = [(row["group"], row["verdict"]) for row in self.rows(run, "decisions.jsonl")]
        for name in ("trace.jsonl", "events.jsonl"):
            done = pace_process.run("replay", run / name, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("verdicts of python:window.py:Window, run again", done.stderr)
            lines = pace_process.json_lines(done.stdout)
            self.assertEqual([(row["group"], row["verdict"]) for row in lines if "group" in row],
                             recorded, name)
        (self.folder / "window.py").unlink()
        done = pace_process.run("replay", run / "trace.jsonl", cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("FileNotFoundError", done.stderr)

    def test_compare_takes_it_as_an_arm(self):
        # The arms differ in who decides, and in nothing else.
        self.write("ours.yaml", f"""
base: tiny
set: [run.num_steps=4, run.evaluate_every=2, task.held_out_problems=8, batch.num_groups=3,
      batch.group_size=2]
seeds: 1
baseline: built-in
arms:
  - {{name: built-in, method: miles-4}}
  - {{name: python, method: async, set: [pool.draw_order=lowest_score, pool.max_groups=4, "{FRESHEST}"]}}
  - {{name: broken, method: async, set: ["admission.policy=python:faults.py:Raises"]}}
""")
        self.write("faults.py", FAULTS)
        compare = ("compare", "ours.yaml", "--jobs", "2", "--out", "out")
        done = pace_process.run(*compare, "--cell", "built-in.1", "--cell", "python.1",
                                cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = {row["arm"]: row for row in self.rows(self.folder / "out", "cells.jsonl")}
        for key in ("weights", "evaluations", "steps"):
            self.assertEqual(cells["built-in"][key], cells["python"][key], key)
        self.assertNotEqual(cells["built-in"]["settings"], cells["python"]["settings"])
        done = pace_process.run(*compare, "--cell", "broken.1", cwd=self.folder)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ValueError: mine", done.stderr)
        self.assertEqual(len(self.rows(self.folder / "out", "cells.jsonl")), 2)

    def test_the_runtime_takes_it(self):
        run = self.trained("runtime", FRESHEST, "run.num_steps=2", "run.checkpoint_every=1")
        self.assertEqual(len(self.rows(run)), 2)
        done = pace_process.run("train", "--resume", run, "run.num_steps=3", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.rows(run)), 3)

    def test_a_fault_ends_the_run_in_one_line(self):
        self.write("faults.py", FAULTS)
        for name, words in [("Raises", r"judge of group 5: exception: ValueError: mine \(faults.py:7\)"),
                            ("Exits", "judge of group 5: crash: its process ended"),
                            ("Sleeps", r"judge of group \d+: timeout: did not return within 0.5 s"),
                            ("Kills", "judge of group 5: "),
                            ("Nothing", "judge of group 5: invalid: gave NoneType"),
                            ("Queue", "state: invalid: seen is a deque")]:
            with self.subTest(name=name):
                # Only what never returns is late, however slow the machine is.
                late = ["admission.timeout=0.5"] if name == "Sleeps" else []
                done, run = self.train(f"fault-{name}", *LAB, *late, "run.num_steps=6",
                                       f"admission.policy=python:faults.py:{name}")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr.splitlines()[-1],
                                 f"^pace: admission policy faults.py:{name}: {words}")
                # Nothing was decided in its place.
                drawn = [row["group"] for row in self.rows(run, "decisions.jsonl")]
                self.assertNotIn(5, drawn)

    def test_what_is_no_policy_leaves_no_run_behind(self):
        self.write("faults.py", FAULTS)
        for policy, words in [("python:faults.py:Broken", "ValueError: mine"),
                              ("python:faults.py:Policy --method async",
                               "--method async names a policy of its own"),
                              ("python:faults.py:Other", "no class Other"),
                              ("python:nowhere.py:Policy", "FileNotFoundError"),
                              ("python:faults.py", "must be python:FILE:CLASS"),
                              ("freshest", "or python:FILE:CLASS")]:
            done, run = self.train("refused", *f"admission.policy={policy}".split())
            self.assertEqual(done.returncode, 2, policy)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertFalse(run.exists())


class SimulationTest(unittest.TestCase):
    def test_freshest_first_in_the_simulator_is_the_built_in_one(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = []
            for name, policy in (("built_in", []), ("python", [FRESHEST])):
                run = pathlib.Path(folder) / name
                done = pace_process.run(
                    "sim", "small", "pool.draw_order=lowest_score", "pool.max_groups=24",
                    "admission.policy=accept_all", *policy, "compare.methods=[]",
                    "run.num_steps=5", "record.level=decisions", "--out", run)
                self.assertEqual(done.returncode, 0, done.stderr)
                runs.append([(run / file).read_bytes()
                             for file in ("decisions.jsonl", "metrics.jsonl")])
            self.assertEqual(runs[0], runs[1])
            self.assertGreater(runs[0][0].count(b"\n"), 10)

    def test_a_sweep_and_a_fault_are_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "faults.py"
            path.write_text(FAULTS)
            for words, arguments in [("must be a built-in policy here",
                                      ["--sweep", "supply.threshold=1,2"]),
                                     ("compare.methods .* names a policy of its own",
                                      ["--out", f"{folder}/run"]),
                                     (r"Always: judge of group \d+: exception: ValueError: mine",
                                      ["compare.methods=[]", "--out", f"{folder}/run"])]:
                done = pace_process.run("sim", "small", f"admission.policy=python:{path}:Always",
                                        "run.num_steps=5", *arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, words)


if __name__ == "__main__":
    unittest.main()
