"""Environments in Python: pace train and pace eval with tools.use=python:FILE:CLASS."""

import json
import os
import re
import subprocess
import unittest

import killed_run
import pace_process
import run_cases

EXAMPLE = pace_process.SOURCE / "examples" / "python_environment" / "retool.py"
RETOOL = f"tools.use=python:{EXAMPLE}:CodeInterpreter"
CALCULATOR = f"tools.use=python:{EXAMPLE}:Calculator"
# PACE_LONG_TESTS=1 compares longer runs and kills more often.
STEPS, KILLS, LEAST = (16, 4, 200) if os.environ.get("PACE_LONG_TESTS") else (5, 1, 60)
FILES = ("metrics.jsonl", "decisions.jsonl", "events.jsonl", "rollouts.jsonl", "responses.jsonl")

FAULTS = """
import os, time, zlib
class Env:
    def reset(self, problem):
        self.number = zlib.crc32(problem["id"].encode()) % 12
    def step(self, turn):
        if self.number == 0: raise ValueError("mine")
        if self.number == 4: os._exit(1)
        if self.number == 8: time.sleep(1000)
        return "again", float(len(turn["text"]) % 3), turn["index"] >= 1
"""


class EnvironmentTest(run_cases.RetoolCase):
    WORDS = (*run_cases.RetoolCase.WORDS, "record.responses=all", "run.checkpoint_every=2")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # What runs the programs of the built-in tool runs those of the environment.
        server = subprocess.Popen([str(pace_process.BINARY), "sandbox", "serve", "--port", "0"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        cls.addClassCleanup(server.communicate)
        cls.addClassCleanup(server.terminate)
        for line in server.stdout:
            found = re.search(r"http://\S+:\d+", line)
            if found:
                break
        cls.mark = f"SANDBOX_URL={found.group()}".encode()
        os.environ["SANDBOX_URL"] = found.group()
        cls.addClassCleanup(os.environ.pop, "SANDBOX_URL")

    def lab(self, name, *arguments):
        return self.trained(name, "--driver", "lab", f"run.num_steps={STEPS}", *arguments)

    def killed_run(self, name, *arguments):
        run = self.folder / name
        return self.killed(name, [killed_run.after_steps(run, 1 + 3 * i) for i in range(KILLS)],
                           *arguments)

    def test_retool_in_python_is_the_built_in_tool(self):
        built_in = self.lab("built_in")
        python = self.lab("python", RETOOL)
        self.assert_same(built_in, python, FILES)
        rows = self.rows(python, "rollouts.jsonl")
        self.assertGreaterEqual(len(rows), LEAST)
        self.assertGreater(sum(row["tool_calls"] for row in rows), LEAST // 4)
        self.assertGreater(sum(row["tool_failures"] for row in rows), 0)
        self.assertGreater(sum(row["correct"] for row in rows), 0)
        again, times = self.killed_run("again", RETOOL, "--driver", "lab", f"run.num_steps={STEPS}")
        self.assertGreater(times, 0)
        self.assert_same(built_in, again, FILES)

    def test_a_state_is_saved_and_put_back(self):
        whole = self.lab("held", CALCULATOR)
        saved = [json.loads((folder / "run.json").read_text()).get("environments", [])
                 for folder in (whole / "checkpoints").glob("step-*")]
        self.assertTrue(any(one["state"].startswith('{"held"') for list_ in saved for one in list_))
        again, times = self.killed_run("held-again", CALCULATOR, "--driver", "lab",
                                       f"run.num_steps={STEPS}")
        self.assertGreater(times, 0)
        self.assert_same(whole, again, FILES)
        rows = self.rows(whole, "rollouts.jsonl")
        self.assertTrue(any(row.get("detail", {}).get("held") for row in rows))

    def test_the_runtime_trains_and_goes_on_after_a_kill(self):
        run, _ = self.killed_run("runtime", RETOOL, "run.num_steps=4")
        rows = self.rows(run, "rollouts.jsonl")
        self.assertGreater(sum(row["tool_calls"] for row in rows), 10)
        self.assertEqual(len(self.rows(run)), 4)
        for row in rows:
            turns = 2 * row["turns"]
            shaped = min(-0.6, -1 + 0.05 * (turns - 2))
            self.assertAlmostEqual(row["reward"], 1.0 if row["correct"] else shaped, places=6)

    def test_an_evaluation_uses_it(self):
        scores = []
        for use in ([], [RETOOL]):
            done = pace_process.run("eval", *run_cases.RetoolCase.WORDS, *use, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            score, = pace_process.json_lines(done.stdout)
            # An environment names no answer that could be voted for.
            scores.append({key: value for key, value in score.items() if "majority" not in key})
        self.assertEqual(scores[0], scores[1])
        self.assertGreater(len(scores[0]), 8)

    def test_a_fault_follows_the_setting(self):
        self.write("faults.py", FAULTS)
        use = "tools.use=python:faults.py:Env"
        for setting in ("fail_group", "zero"):
            done, run = self.train(setting, use, f"reward.on_error={setting}", "run.num_steps=2",
                                   "tools.timeout=0.5")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("environment of problem ", done.stderr)
            self.assertEqual(len(self.rows(run)), 2)
        done, _ = self.train("stop", use, "reward.on_error=stop", "tools.timeout=0.5")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr.splitlines()[-1],
                         "pace: environment of problem .*(exception|crash|timeout): ")

    def test_what_is_no_environment_leaves_no_run_behind(self):
        self.write("half.py", "class Env:\n    def reset(self, problem): pass\n")
        for use, words in [("python:half.py:Env", "Env has no method step"),
                           ("python:half.py:Other", "no class Other"),
                           ("python:nowhere.py:Env", "FileNotFoundError"),
                           ("python:half.py", "must be python:FILE:CLASS"),
                           ("calculator", "must be none, code_interpreter or python:FILE:CLASS")]:
            done, run = self.train("refused", f"tools.use={use}")
            self.assertEqual(done.returncode, 2, use)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertFalse(run.exists())

    def tearDown(self):
        self.assertEqual(run_cases.processes_with(self.mark, "environ"), [])


if __name__ == "__main__":
    unittest.main()
