"""pace data show: problems of files and presets, as a model sees them."""

import json
import pathlib
import tempfile
import unittest

import pace_process

SUM = {"prompt": "3+4", "answer": 7}
GSM8K = {"prompt": [{"role": "user", "content": "How many?"}], "data_source": "openai/gsm8k",
         "reward_model": {"ground_truth": "72"}}


class DataCommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, *rows):
        path = self.folder / "train.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def show(self, *arguments):
        done = pace_process.run("data", "show", *arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return pace_process.json_lines(done.stdout)

    def test_a_preset_shows_the_prompts_of_its_run(self):
        rows = self.show("tiny", "-n", "2")
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(row["num_tokens"], len(row["prompt"]))  # one token a character
            self.assertTrue(row["answer"])

    def test_a_file_needs_no_settings(self):
        row, = self.show(self.file(GSM8K))
        self.assertEqual(row, {"id": "train/0", "prompt": "user: How many?", "answer": "72",
                               "verifier": "gsm8k"})

    def test_a_model_adds_its_template_and_tokens(self):
        row, = self.show(self.file(SUM), "policy.model=tiny")
        self.assertEqual((row["prompt"], row["num_tokens"], row["answer"]), ("3+4", 3, "7"))

    def test_keys_may_be_named(self):
        row, = self.show(self.file({"input": "3+4", "extra": {"gold": 7}}),
                         "task.prompt_key=input", "task.answer_key=extra.gold")
        self.assertEqual((row["prompt"], row["answer"]), ("3+4", "7"))

    def test_text_shows_prompt_answer_and_verifier(self):
        done = pace_process.run("data", "show", self.file(SUM))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "--- 1: train/0, answer 7, verifier dapo-int\n3+4\n")
        self.assertIn("1 problems in an epoch", done.stderr)

    def test_several_sources_are_mixed_by_weight(self):
        for name in ("a", "b"):
            (self.folder / f"{name}.jsonl").write_text("".join(
                json.dumps(SUM | {"id": f"{name}/{i}"}) + "\n" for i in range(3)))
        settings = self.folder / "mixed.yaml"
        settings.write_text(f"task:\n  kind: dataset\n"
                            f"  sources: [{self.folder}/a.jsonl@3, {self.folder}/b.jsonl]\n")
        ids = [row["id"][0] for row in self.show(settings, "-n", "20")]
        self.assertEqual((ids.count("a"), ids.count("b")), (15, 5))
        both = pace_process.run("data", "show", settings, f"task.file={self.folder}/a.jsonl")
        self.assertEqual(both.returncode, 2)
        self.assertIn("either task.file or task.sources, not both", both.stderr)

    def test_bad_files_are_refused_in_one_line(self):
        for rows, word in [([{"text": "a"}], "task.prompt_key"),
                           ([GSM8K | {"data_source": "taco"}], "task.verifier")]:
            done = pace_process.run("data", "show", self.file(*rows))
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(word, done.stderr)
        path = self.file(SUM).with_suffix(".parquet")
        path.write_bytes(b"PAR1")
        done = pace_process.run("data", "show", path, "task.python=/nowhere/python")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("task.python = /nowhere/python", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
