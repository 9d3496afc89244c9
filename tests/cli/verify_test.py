"""pace verify: rewards of responses, line by line."""

import json
import subprocess
import unittest

import pace_process
import shared_data

VERIFY = shared_data.FOLDER / "verify"


def verify(lines, *arguments):
    return pace_process.run("verify", *arguments, lines=lines)


class VerdictsTest(unittest.TestCase):
    def verdicts(self, lines, *arguments):
        done = verify(lines, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return pace_process.json_lines(done.stdout)

    def refuse(self, done, *words):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, repr(done.stderr))
        for word in ("pace: ", *words):
            self.assertIn(word, done.stderr)


class VerifyTest(VerdictsTest):
    def test_every_mode_judges_in_its_own_way(self):
        for mode, response, answer, verdict in [
                ("dapo", "Answer: -1,234", "-1234", (False, -1, "-1,234")),
                ("dapo-int", "Answer: -1,234", "-1234", (True, 1, "-1,234")),
                ("dapo", "no answer", "34", (False, -1, "[INVALID]")),
                ("dapo-strict", "\\boxed{34}", "34", (True, 1, "34")),
                ("dapo-strict", "Answer: 34", "34", (False, -1, None)),
                ("math", "\\boxed{\\frac12}", "\\dfrac{1}{2}", (True, 1, "\\frac12")),
                ("equiv", "so $x = \\boxed{0.5}$", "\\frac{1}{2}", (True, 1, "0.5")),
                ("equiv", "so $x = \\boxed{0.6}$", "\\frac{1}{2}", (False, 0, "0.6")),
                ("gsm8k", "#### 1,000", "1000", (True, 1, "1000")),
                ("exact", " 34\n", "34", (True, 1, "34")),
                ("retool", "\\boxed{35}", "34", (False, -1, "35"))]:
            with self.subTest(mode=mode, response=response):
                seen, = self.verdicts([{"response": response, "answer": answer}], "--mode", mode)
                self.assertEqual((seen["correct"], seen["score"], seen["extracted"]), verdict)
                self.assertEqual(list(seen), ["correct", "score", "extracted"])

    def test_the_default_is_what_training_uses(self):
        line = {"response": "Answer: +5", "answer": "5"}
        self.assertEqual(self.verdicts([line]), self.verdicts([line], "--mode", "dapo-int"))
        self.assertTrue(self.verdicts([line])[0]["correct"])

    def test_answers_may_be_numbers(self):
        lines = [{"response": "Answer: 34", "answer": 34}, {"response": "Answer: 0.5", "answer": 0.5}]
        self.assertEqual([seen["correct"] for seen in self.verdicts(lines)], [True, True])
        self.refuse(verify([{"response": "Answer: 34", "answer": [34]}]), "stdin:1", "'answer'")

    def test_turns_shape_the_score_of_retool(self):
        lines = [{"response": "", "answer": "34", "num_turns": turns} for turns in (2, 4, 10, 99)]
        lines.append({"response": "", "answer": "34", "num_turns": None})
        self.assertEqual([line["score"] for line in self.verdicts(lines, "--mode", "retool")],
                         [-1, -0.9, -0.6, -0.6, -1])

    def test_lines_keep_their_order_and_other_keys_do_not_matter(self):
        lines = [{"id": i, "response": f"Answer: {i}", "answer": str(i - i % 2)}
                 for i in range(300)]
        seen = self.verdicts(lines)
        self.assertEqual([line["extracted"] for line in seen], [str(i) for i in range(300)])
        self.assertEqual([line["correct"] for line in seen], [i % 2 == 0 for i in range(300)])

    def test_texts_of_any_script_and_length(self):
        seen = self.verdicts([{"response": "答え\nAnswer: 三十四 é", "answer": "三十四 é"},
                              {"response": "9" * 3_000_000, "answer": "9"}], "--mode", "equiv")
        self.assertEqual([line["correct"] for line in seen], [True, False])

    def test_a_bad_line_is_named_and_those_before_it_are_answered(self):
        good = {"response": "Answer: 1", "answer": "1"}
        for bad, word in [("x", ""), ("[1]", "object"), ({"answer": "1"}, "'response'"),
                          ({"response": "1"}, "'answer'"),
                          ({"response": 1, "answer": "1"}, "response"),
                          ({"response": "1", "answer": None}, "answer"),
                          ({**good, "num_turns": -1}, "num_turns"),
                          ({**good, "num_turns": 1.5}, "num_turns")]:
            with self.subTest(bad):
                done = verify([good, good, bad, good])
                self.refuse(done, "stdin:3: ", word)
                self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_an_unknown_mode_is_refused_with_the_known_ones(self):
        self.refuse(verify([], "--mode", "dapo_int"), "dapo_int", "dapo-int", "retool")

    def test_help_has_an_example(self):
        done = pace_process.run("verify", "--help")
        self.assertEqual(done.returncode, 0)
        for word in ("Example:", "pace verify", "--mode", "dapo-int", "equiv"):
            self.assertIn(word, done.stdout)

    def test_an_answer_comes_before_the_next_line_is_sent(self):
        with subprocess.Popen([str(pace_process.BINARY), "verify"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            for number in range(3):
                process.stdin.write(json.dumps({"response": f"Answer: {number}",
                                                "answer": "1"}) + "\n")
                process.stdin.flush()
                seen = json.loads(process.stdout.readline())
                self.assertEqual(seen["correct"], number == 1)
            process.stdin.close()
            self.assertEqual(process.wait(timeout=pace_process.PATIENCE), 0)


class ReferenceCasesTest(VerdictsTest):
    @shared_data.needs(VERIFY, 700)
    def test_dapo_is_that_of_verl_to_the_bit(self):
        cases = json.loads((VERIFY / "dapo_cases.json").read_text())
        for strict, mode in ((False, "dapo"), (True, "dapo-strict")):
            chosen = [case for case in cases if case["strict_box"] == strict]
            seen = self.verdicts([{"response": case["solution"], "answer": case["gold"]}
                                  for case in chosen], "--mode", mode)
            for case, line in zip(chosen, seen, strict=True):
                self.assertEqual((line["correct"], line["score"], line["extracted"]),
                                 (case["acc"], case["score"], case["pred"]))

    @shared_data.needs(VERIFY, 125)
    def test_equivalence_agrees(self):
        cases = json.loads((VERIFY / "equivalence_cases.json").read_text())
        seen = self.verdicts([{"response": case["pred"], "answer": case["gold"]}
                              for case in cases], "--mode", "equiv")
        for case, line in zip(cases, seen, strict=True):
            self.assertEqual(line["correct"], bool(case["expected"]), case)


if __name__ == "__main__":
    unittest.main(verbosity=2)
