"""The comparison of six methods on a GPU agrees with the one on the CPU, and results/README.md
says of SmolLM2 what its evaluations say."""

import collections
import json
import math
import pathlib
import statistics
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
ON_CPU = ROOT / "results" / "experiments" / "main"
ON_GPU = ROOT / "results" / "main_h200"
NUM_SEEDS = 8
STUDENT_95 = 2.365  # of seven degrees of freedom


def area(cell):
    """The mean accuracy over updates, by trapezoids."""
    points = [(at["step"], at["accuracy"]) for at in cell["evaluations"]]
    whole = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(points, points[1:]))
    return whole / (points[-1][0] - points[0][0])


def areas(folder):
    """Of each arm: the mean over seeds, and half of its interval."""
    values = collections.defaultdict(list)
    for line in (folder / "cells.jsonl").read_text(encoding="utf-8").splitlines():
        cell = json.loads(line)
        values[cell["arm"]].append(area(cell))
    assert all(len(seeds) == NUM_SEEDS for seeds in values.values())
    return {arm: (statistics.mean(seeds), STUDENT_95 * statistics.stdev(seeds) / math.sqrt(NUM_SEEDS))
            for arm, seeds in values.items()}


class ComparisonTest(unittest.TestCase):
    def setUp(self):
        self.cpu, self.gpu = areas(ON_CPU), areas(ON_GPU)

    def test_it_ran_on_a_gpu(self):
        manifest = json.loads((ON_GPU / "manifest.json").read_text(encoding="utf-8"))
        self.assertIn("device=cuda", manifest["overrides"])

    def test_the_order_is_the_same(self):
        by_area = [sorted(found, key=lambda arm: -found[arm][0]) for found in (self.cpu, self.gpu)]
        self.assertEqual(*by_area)
        self.assertEqual(len(by_area[0]), 6)

    def test_every_interval_meets_the_other(self):
        for arm, (mean, half) in self.cpu.items():
            other, other_half = self.gpu[arm]
            self.assertLessEqual(abs(mean - other), half + other_half, arm)


class SmolLm2Test(unittest.TestCase):
    def test_the_table_says_what_the_evaluations_say(self):
        readme = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
        for folder, name in (("smollm2_words", "held_out"), ("smollm2_gsm8k", "gsm8k_test")):
            lines = (ROOT / "results" / folder / "eval.jsonl").read_text(encoding="utf-8")
            every = [json.loads(line) for line in lines.splitlines()]
            ends = [{key.removeprefix(f"eval/{name}/"): value for key, value in at.items()}
                    for at in (every[0], every[-1])]
            accuracy = [f"{100 * at['mean@1']:.1f} ± {100 * at['mean@1_half_width']:.1f} %"
                        for at in ends]
            lengths = " -> ".join(f"{at['length']:.0f}" for at in ends)
            cut = " -> ".join(f"{100 * at['truncated']:.0f}" for at in ends)
            self.assertIn(f"| {' | '.join(accuracy)} | {lengths} | {cut} % |", readme)
            self.assertRegex(readme, rf"(?m)^\| `{folder}` .* \| {ends[1]['time']:.0f} s \|$")


if __name__ == "__main__":
    unittest.main()
