"""Rewards in Python: pace verify and pace train with task.verifier=python:FILE:FUNCTION."""

import pathlib
import random
import tempfile
import unittest

import pace_process
import run_cases

EXAMPLE = pace_process.SOURCE / "examples" / "python_reward" / "rewards.py"
BUILT_IN = f"task.verifier=python:{EXAMPLE}:gsm8k"


def random_texts(number):
    """Texts around numbers, with everything that could be taken for one."""
    pieces = ["####", " ", "\n", "-", "$", "1,000", "34", "034", "3.40", ".5", "x", "=", "1,2,3", ".",
              "a-7", "7-", "-0", "so ", "é", "12.", "00"]
    chance = random.Random(7)
    return ["".join(chance.choice(pieces) for _ in range(chance.randrange(9)))
            for _ in range(number)]


class VerifyTest(unittest.TestCase):
    def scores(self, mode, lines):
        done = pace_process.run("verify", "--mode", mode, lines=lines)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return pace_process.json_lines(done.stdout)

    def test_the_example_gives_the_scores_of_the_built_in_verifier(self):
        texts = random_texts(1200)
        lines = [{"response": text, "answer": answer}
                 for text, answer in zip(texts, texts[1:] + texts[:1])]
        lines += [{"response": text, "answer": text} for text in texts]
        ours = self.scores(f"python:{EXAMPLE}:gsm8k", lines)
        built_in = self.scores("gsm8k", lines)
        self.assertEqual([seen["score"] for seen in ours], [seen["score"] for seen in built_in])
        self.assertGreater(sum(seen["score"] for seen in ours), 300)

    def test_a_dictionary_is_shown_and_a_fault_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mine.py"
            path.write_text("def score(response, answer):\n"
                            "    return {'score': 1 / len(response), 'words': 2}\n")
            seen = self.scores(f"python:{path}:score",
                               [{"response": "abcd", "answer": 1}, {"response": "", "answer": 1}])
        self.assertEqual(seen[0], {"correct": True, "score": 0.25, "extracted": None,
                                   "detail": {"words": 2}})
        self.assertEqual(seen[1], {"error": "exception: ZeroDivisionError: division by zero "
                                            "(mine.py:2)"})

    def test_a_function_that_cannot_be_loaded_is_refused_in_one_line(self):
        for mode, words in [("python:/nowhere.py:f", "/nowhere.py: FileNotFoundError"),
                            ("python:nothing", "must be python:FILE:FUNCTION"),
                            (f"python:{EXAMPLE}:other", "no function other")]:
            done = pace_process.run("verify", "--mode", mode, lines=[])
            self.assertEqual(done.returncode, 2, mode)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)


class TrainTest(run_cases.TinyCase):
    def test_a_run_in_the_lab_is_that_of_the_built_in_verifier(self):
        lab = ["--driver", "lab", "run.num_steps=4"]
        built_in = self.trained("built_in", *lab)
        python = self.trained("python", *lab, BUILT_IN)
        self.assert_same(built_in, python, ("rollouts.jsonl", "decisions.jsonl", "metrics.jsonl"))
        self.assertGreater(len(self.rows(python, "rollouts.jsonl")), 40)

    def test_a_run_with_checkpoints_records_what_the_function_gave_and_goes_on(self):
        arguments = [f"task.verifier=python:{EXAMPLE}:brief", "run.checkpoint_every=1"]
        run = self.trained("brief", *arguments, "run.num_steps=3")
        rows = self.rows(run, "rollouts.jsonl")
        self.assertTrue(all(set(row["detail"]) == {"bonus"} for row in rows))
        done = pace_process.run("train", "--resume", run, "run.num_steps=5", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.rows(run)), 5)

    def warnings(self, run):
        """What the run recorded of rewards that failed."""
        said = [row["text"] for row in self.rows(run, "warnings.jsonl")
                if row["kind"] == "failed_rewards"]
        for text in said:
            self.assertRegex(text, r"^reward of problem \S+: (exception|crash|invalid): ")
        return said

    def test_a_fault_follows_the_setting(self):
        # Every fifth response fails, in turn by an exception, an exit and a NaN.
        path = self.write("faults.py", "import os, zlib\n"
                          "def score(response, id):\n"
                          "    number = zlib.crc32((id + response).encode()) % 15\n"
                          "    if number == 0: raise ValueError('mine')\n"
                          "    if number == 5: os._exit(1)\n"
                          "    if number == 10: return float('nan')\n"
                          "    return number % 2\n")
        verifier = f"task.verifier=python:{path}:score"
        for setting in ("fail_group", "zero"):
            done, run = self.train(setting, verifier, f"reward.on_error={setting}",
                                   "run.num_steps=3")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("reward of problem ", done.stderr)
            self.assertEqual(len(self.rows(run)), 3)
            said = self.warnings(run)
            self.assertIn(said[-1], (run / "report.html").read_text())
        done, run = self.train("stop", verifier, "reward.on_error=stop", "run.num_steps=3")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.warnings(run)[-1], done.stderr.splitlines()[-1].removeprefix("pace: "))
        self.assertRegex(done.stderr.splitlines()[-1],
                         "pace: reward of problem .*(exception|crash|invalid): ")

    def test_a_reward_that_always_fails_ends_the_run(self):
        path = self.write("broken.py", "def score(response):\n    return response\n")
        done, _ = self.train("broken", f"task.verifier=python:{path}:score", "run.num_steps=3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("64 failed in a row", done.stderr)

    def test_a_file_that_does_not_load_leaves_no_run_behind(self):
        path = self.write("syntax.py", "def score(:\n")
        done, run = self.train("syntax", f"task.verifier=python:{path}:score")
        self.assertEqual(done.returncode, 2)
        self.assertIn("SyntaxError", done.stderr)
        self.assertFalse(run.exists())


if __name__ == "__main__":
    unittest.main()
