"""pace score: log-probabilities of given tokens, in order."""

import json
import subprocess
import tempfile
import unittest

import pace_process
import shared_data
import stories

MODELS = shared_data.FOLDER / "models"


def score(model, lines, *arguments):
    return pace_process.run("score", "--model", model, *arguments, lines=lines)


class ScoreTest(unittest.TestCase):
    def scores(self, model, lines, *arguments):
        done = score(model, lines, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [line["logprobs"] for line in pace_process.json_lines(done.stdout)]

    def refuse(self, done, *words):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, repr(done.stderr))
        for word in ("pace: ", *words):
            self.assertIn(word, done.stderr)


@unittest.skipIf(stories.missing(), stories.missing())
class StoriesTest(ScoreTest):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.model = stories.import_into(scratch.name)

    def test_scores_are_what_a_computation_by_hand_gives(self):
        text = "Lily had a dog."
        ids = stories.Vocabulary().encode(text)
        by_ids, by_text = self.scores(self.model, [{"ids": ids}, {"text": text}])
        self.assertEqual(by_ids, by_text)
        for ours, theirs in zip(by_ids, stories.score(ids), strict=True):
            self.assertAlmostEqual(ours, theirs, delta=1e-4)

    def test_what_was_generated_scores_as_it_was_generated(self):
        prompt = [1, 403, 407, 261, 378]
        done = pace_process.run("generate", "--model", self.model, "--temperature", 1, "--seed", 9,
                                "--max-tokens", 40, "--ignore-eos", lines=[{"ids": prompt}])
        answer, = pace_process.json_lines(done.stdout)
        scores, = self.scores(self.model, [{"ids": prompt + answer["ids"]}])
        # Prefill and decode agree to the bit.
        self.assertEqual(scores[len(prompt) - 1:], answer["logprobs"])

    def test_lines_keep_their_order_and_do_not_depend_on_each_other(self):
        lines = [{"ids": [(11 * i + 3 * j) % 512 for j in range((37 * i) % 300)]}
                 for i in range(50)]
        together = self.scores(self.model, lines, "--threads", 2)
        self.assertEqual([len(line) for line in together],
                         [max(len(line["ids"]) - 1, 0) for line in lines])
        self.assertEqual(together, self.scores(self.model, lines, "--kv-memory", "700KiB",
                                               "--threads", 1))
        for i in (3, 17, 42):
            self.assertEqual([together[i]], self.scores(self.model, [lines[i]]))

    def test_a_bad_line_is_named_and_those_before_it_are_answered(self):
        good = {"ids": [1, 2, 3]}
        for bad, word in [("x", ""), ({"ids": [512]}, "512"), ({"ids": "a"}, "ids"),
                          ({"ids": [1] * 600}, "512 positions")]:
            with self.subTest(bad):
                done = score(self.model, [good, good, bad, good])
                self.refuse(done, "stdin:3: ", word)
                self.assertEqual(len(done.stdout.splitlines()), 2)
        self.refuse(score(self.model, [{"ids": [1] * 200}], "--kv-memory", "100KiB"),
                    "stdin:1", "--kv-memory")

    def test_an_answer_comes_before_the_next_line_is_sent(self):
        with subprocess.Popen(
                [str(pace_process.BINARY), "score", "--model", str(self.model)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for length in (3, 1, 20):
                process.stdin.write(json.dumps({"ids": [1] * length}) + "\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                self.assertEqual(len(answer["logprobs"]), length - 1)
            process.stdin.close()
            self.assertEqual(process.wait(timeout=pace_process.PATIENCE), 0)


@shared_data.needs(MODELS, 20)
class ReferenceModelsTest(ScoreTest):
    def test_scores_are_what_transformers_computed(self):
        for path in sorted(MODELS.glob("*/config.json")):
            with self.subTest(path.parent.name):
                cases = json.loads((path.parent / "expected.json").read_text())["cases"]
                scores = self.scores(path.parent, [{"ids": case["input_ids"]} for case in cases])
                for case, ours in zip(cases, scores, strict=True):
                    for a, b in zip(ours, case.get("log_probs", []), strict=True):
                        self.assertAlmostEqual(a, b, delta=1e-4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
