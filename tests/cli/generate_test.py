"""pace generate: the right tokens, in order, whatever else is in the batch."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import pace_process
import shared_data
import stories

MODELS = shared_data.FOLDER / "models"
PROMPTS = ["Once upon a time", "Lily and Tom", "", "The cat's \u00e9clair \U0001f600"]


def generate(model, lines, *arguments):
    return pace_process.run("generate", "--model", model, *arguments, lines=lines)


class GenerateTest(unittest.TestCase):
    def answers(self, model, lines, *arguments):
        done = generate(model, lines, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pace_process.json_lines(done.stdout)

    def refuse(self, done, *words):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, repr(done.stderr))
        self.assertTrue(done.stderr.startswith("pace: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


@unittest.skipIf(stories.missing(), stories.missing())
class StoriesTest(GenerateTest):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.model = stories.import_into(scratch.name)
        cls.vocabulary = stories.Vocabulary()

    def test_greedy_is_what_a_computation_by_hand_gives(self):
        answers = self.answers(self.model, [{"text": text} for text in PROMPTS[:2]], "--greedy",
                               "--max-tokens", 12)
        for text, answer in zip(PROMPTS, answers):
            ids, logprobs = stories.greedy(self.vocabulary.encode(text), 12)
            self.assertEqual(answer["ids"], ids)
            self.assertEqual(answer["text"], self.vocabulary.decode(ids))
            for ours, theirs in zip(answer["logprobs"], logprobs, strict=True):
                self.assertAlmostEqual(ours, theirs, delta=1e-4)
        self.assertEqual(answers[0]["text"], ", there was a little girl named Lily. She")

    def test_ids_and_text_are_the_same_prompt(self):
        lines = [{"text": text} for text in PROMPTS]
        lines += [{"ids": self.vocabulary.encode(text)} for text in PROMPTS]
        answers = self.answers(self.model, lines, "--greedy", "--max-tokens", 8)
        self.assertEqual(answers[:len(PROMPTS)], answers[len(PROMPTS):])

    def test_lines_come_in_order_and_do_not_depend_on_each_other(self):
        lines = [{"ids": [1] + [(7 * i + j) % 500 + 3 for j in range(i % 40)]} for i in range(60)]
        arguments = ["--temperature", 0.8, "--seed", 3, "--max-tokens", 24, "--threads", 2]
        together = self.answers(self.model, lines, *arguments)
        self.assertEqual(len(together), len(lines))
        # The random numbers belong to the line's number, so each alone must stand there too.
        cramped = self.answers(self.model, lines, *arguments[:-1], 1, "--kv-memory", "400KiB")
        self.assertEqual(together, cramped)
        first = self.answers(self.model, lines[:1], *arguments)
        self.assertEqual(first, together[:1])
        other = self.answers(self.model, lines, "--temperature", 0.8, "--seed", 4, "--max-tokens", 24)
        self.assertNotEqual(together, other)

    def test_several_responses_are_one_line_each(self):
        answers = self.answers(self.model, [{"text": "Once"}, {"text": "One day"}], "--seed", 1,
                               "--num-responses", 3, "--max-tokens", 20)
        self.assertEqual([answer["response"] for answer in answers], [0, 1, 2, 0, 1, 2])
        self.assertEqual(len({str(answer["ids"]) for answer in answers}), 6)

    def test_a_response_ends_where_it_is_told_to(self):
        line = {"text": "Once upon a time"}
        whole, = self.answers(self.model, [line], "--greedy", "--max-tokens", 60)
        stopped, = self.answers(self.model, [line], "--greedy", "--max-tokens", 60,
                                "--stop", "park", "--stop", "girl")
        self.assertTrue(stopped["text"].endswith("girl"), stopped)
        self.assertEqual(stopped["ids"], whole["ids"][:len(stopped["ids"])])
        # This model ends its stories before its positions do.
        ended, = self.answers(self.model, [line], "--greedy")
        self.assertIn(ended["ids"][-1], (stories.BOS, stories.EOS))
        self.assertNotIn("<s>", ended["text"])
        longer, = self.answers(self.model, [line], "--greedy", "--ignore-eos",
                               "--max-tokens", len(ended["ids"]) + 5)
        self.assertEqual(len(longer["ids"]), len(ended["ids"]) + 5)

    def test_bf16_is_near(self):
        line = {"text": "Once upon a time"}
        exact, = self.answers(self.model, [line], "--greedy", "--max-tokens", 5)
        rounded, = self.answers(self.model, [line], "--greedy", "--max-tokens", 5, "--dtype", "bf16")
        self.assertEqual(exact["ids"], rounded["ids"])
        self.assertNotEqual(exact["logprobs"], rounded["logprobs"])
        for a, b in zip(exact["logprobs"], rounded["logprobs"], strict=True):
            self.assertAlmostEqual(a, b, delta=0.05)

    def test_a_bad_line_is_named_and_those_before_it_are_answered(self):
        good = {"text": "Once"}
        for bad, *words in [("hello", ""), ({"ids": []}, "no tokens"), ({"ids": [512]}, "512"),
                            ({"ids": [-1]}, "ids[0]"), ({}, "'ids'"), ({"ids": [1] * 512}, "512"),
                            ({"messages": []}, "chat_template"), ('{"text": "a', "")]:
            with self.subTest(bad):
                done = generate(self.model, [good, good, "", bad, good], "--greedy",
                                "--max-tokens", 2)
                self.refuse(done, "stdin:4: ", *words)
                self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_a_prompt_that_does_not_fit_is_refused(self):
        self.refuse(generate(self.model, [{"ids": [1] * 500}], "--max-tokens", 20),
                    "stdin:1", "the model has 512 positions")
        self.refuse(generate(self.model, [{"ids": [1] * 100}], "--max-tokens", 20, "--kv-memory",
                             "100KiB"), "stdin:1", "block")
        self.refuse(generate(self.model, [], "--kv-memory", "1KB"), "--kv-memory 1KB")
        self.refuse(generate(self.model, [], "--kv-memory", "much"), "--kv-memory much")

    def test_bad_options_are_refused(self):
        for arguments, word in [(["--temperature", -1], "temperature"), (["--top-p", 0], "top_p"),
                                (["--max-tokens", 0], "--max-tokens"), (["--dtype", "f16"], "f16"),
                                (["--num-responses", 0], "--num-responses"),
                                (["--system", "x"], "--system"), (["no/such/file"], "no/such")]:
            with self.subTest(arguments):
                self.refuse(generate(self.model, [], *arguments), word)

    def test_a_file_may_name_the_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lines.jsonl"
            path.write_text('{"text": "Once"}\n\n{"text": "Lily"}')
            done = pace_process.run("generate", "--model", self.model, "--greedy", "--max-tokens",
                                    3, path)
            self.assertEqual(len(pace_process.json_lines(done.stdout)), 2)
            path.write_text('{"text": "Once"}\nx\n')
            self.refuse(pace_process.run("generate", "--model", self.model, "--greedy", path),
                        f"{path}:2: ")

    def test_an_answer_comes_before_the_next_line_is_sent(self):
        with subprocess.Popen(
                [str(pace_process.BINARY), "generate", "--model", str(self.model), "--greedy",
                 "--max-tokens", "3"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True) as process:
            for _ in range(3):
                process.stdin.write('{"text": "Once"}\n')
                process.stdin.flush()
                self.assertEqual(len(json.loads(process.stdout.readline())["ids"]), 3)
            process.stdin.close()
            self.assertEqual(process.wait(timeout=pace_process.PATIENCE), 0)


class ReferenceModelsTest(GenerateTest):
    @shared_data.needs(MODELS, 20)
    def test_greedy_is_what_transformers_generated(self):
        folders = sorted(path.parent for path in MODELS.glob("*/config.json"))
        self.assertTrue(folders)
        for folder in folders:
            with self.subTest(folder.name):
                cases = json.loads((folder / "expected.json").read_text())["cases"]
                for num_tokens, ours in self.by_length(folder, cases):
                    for case, answer in ours:
                        self.assertEqual(answer["ids"], case["greedy"][:num_tokens])
                        self.assertNotIn("text", answer)

    def by_length(self, folder, cases):
        for num_tokens in sorted({len(case["greedy"]) for case in cases}):
            chosen = [case for case in cases if len(case["greedy"]) == num_tokens]
            answers = self.answers(folder, [{"ids": case["input_ids"]} for case in chosen],
                                   "--greedy", "--ignore-eos", "--max-tokens", num_tokens)
            yield num_tokens, list(zip(chosen, answers, strict=True))

    @shared_data.needs(MODELS, 1)
    def test_text_needs_a_tokenizer(self):
        folder = next(MODELS.glob("*/config.json")).parent
        self.refuse(generate(folder, [{"text": "a"}]), "stdin:1", "tokenizer.json")

    @shared_data.needs(MODELS, 1)
    def test_a_folder_that_is_no_model_is_refused(self):
        self.refuse(generate("no/such/folder", []), "no/such/folder")


if __name__ == "__main__":
    unittest.main(verbosity=2)
