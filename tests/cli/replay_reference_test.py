"""pace replay equals every reference trace: verdicts, reasons, and numbers."""

import json
import unittest

import pace_process
import shared_data

FOLDER = shared_data.FOLDER / "admission"
TOLERANCE = 1e-12


def same(ours, theirs):
    if isinstance(theirs, bool) or theirs is None or isinstance(theirs, str):
        return ours == theirs
    if not isinstance(ours, (int, float)) or isinstance(ours, bool):
        return False
    return abs(ours - theirs) <= TOLERANCE * max(abs(ours), abs(theirs))


class ReplayReferenceTest(unittest.TestCase):
    @shared_data.needs(FOLDER, 7014)
    def test_every_reference_trace(self):
        traces = sorted(FOLDER.glob("*.trace.jsonl"))
        self.assertTrue(traces)
        num_lines = 0
        for trace in traces:
            name = trace.name.removesuffix(".trace.jsonl")
            with self.subTest(trace=name):
                done = pace_process.run("replay", trace, "--config", FOLDER / f"{name}.json")
                self.assertEqual(done.returncode, 0, done.stderr)
                ours = pace_process.json_lines(done.stdout)
                theirs = pace_process.json_lines(
                    (FOLDER / f"{name}.expected.jsonl").read_text())
                self.assertEqual(len(ours), len(theirs))
                for number, (a, b) in enumerate(zip(ours, theirs), 1):
                    self.assertEqual(list(a), list(b), f"{name}:{number}")
                    for key in b:
                        self.assertTrue(same(a[key], b[key]),
                                        f"{name}:{number}: {key}: {a[key]} is not {b[key]}")
                    num_lines += 1
        print(f"{len(traces)} traces, {num_lines} lines compared")


class ComparisonTest(unittest.TestCase):
    """The comparison above can fail."""

    def test_it_sees_a_difference(self):
        self.assertTrue(same(0.1 + 0.2, 0.3))
        self.assertFalse(same(0.3000001, 0.3))
        self.assertFalse(same(1e-9, 0.0))
        self.assertFalse(same(None, 0.0))
        self.assertFalse(same("admit", "reject"))
        self.assertTrue(same(json.loads("0"), 0.0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
