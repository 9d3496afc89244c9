"""pace eval: scores as JSON Lines or a table, and every response on request."""

import os
import pathlib
import pty
import subprocess
import tempfile
import unittest

import pace_process

SMALL = ("eval", "tiny", "evaluation.max_problems=3", "evaluation.num_responses=2")


class EvalCommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "eval"

    def test_a_pipe_gets_json_and_out_keeps_the_responses(self):
        done = pace_process.run(*SMALL, "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        score, = pace_process.json_lines(done.stdout)
        self.assertEqual((score["num_problems"], score["num_responses"]), (3, 2))
        self.assertEqual((self.out / "scores.jsonl").read_text(), done.stdout)
        responses = pace_process.json_lines((self.out / "responses.jsonl").read_text())
        self.assertEqual(sorted((row["problem"], row["member"]) for row in responses),
                         [(f"held_out/{i}", k) for i in range(3) for k in range(2)])
        self.assertAlmostEqual(sum(row["correct"] for row in responses) / 6, score["mean"])
        for row in responses:
            self.assertTrue(row["response"])
            self.assertTrue(row["answer"])
        again = pace_process.run(*SMALL, "--out", self.out)
        self.assertEqual(again.returncode, 2)
        self.assertIn("holds an evaluation already", again.stderr)

    def test_a_terminal_gets_a_table(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([str(pace_process.BINARY), *SMALL], stdin=subprocess.DEVNULL,
                                   stdout=slave, stderr=subprocess.DEVNULL)
        os.close(slave)
        shown = b""
        try:
            while piece := os.read(master, 4096):
                shown += piece
        except OSError:
            pass  # the other end is closed
        os.close(master)
        self.assertEqual(process.wait(timeout=pace_process.PATIENCE), 0)
        self.assertIn(b"mean@k", shown)
        self.assertNotIn(b"{", shown)


if __name__ == "__main__":
    unittest.main(verbosity=2)
