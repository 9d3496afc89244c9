"""scripts/run_experiments: what it reads in experiments, and what it calls different."""

import importlib.machinery
import importlib.util
import unittest

import source_tree


def load():
    path = str(source_tree.root() / "scripts" / "run_experiments")
    loader = importlib.machinery.SourceFileLoader("run_experiments", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class RunExperimentsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.script = load()

    def test_arms_and_seeds_are_read(self):
        text = ("first_seed: 101\nseeds: 2\narms:\n  - sync\n  - {name: threshold-2, method: async}\n"
                "claims:\n  - {}\n")
        self.assertEqual(self.script.arms_of(text), ["sync", "threshold-2"])
        self.assertEqual(self.script.seeds_of(text), (101, 2))

    def test_committed_cells_are_those_of_the_experiments(self):
        for path in sorted((source_tree.root() / "experiments").glob("*.yaml")):
            text = path.read_text(encoding="utf-8")
            cells = self.script.cells_of(
                source_tree.root() / "results" / "experiments" / path.stem / "cells.jsonl")
            first, seeds = self.script.seeds_of(text)
            wanted = {(arm, seed) for arm in self.script.arms_of(text)
                      for seed in range(first, first + seeds)}
            with self.subTest(path.stem):
                self.assertIn(set(cells), (set(), wanted))

    def test_what_differs_is_named(self):
        committed = {("pace", 1): "a", ("sync", 1): "b"}
        self.assertIsNone(self.script.difference({("pace", 1): "a"}, committed))
        self.assertIsNone(self.script.difference({("pace", 1): "a"}, {}))
        self.assertEqual(self.script.difference({("pace", 1): "c"}, committed), "differ: pace.1")
        self.assertEqual(self.script.difference({("pace", 2): "a"}, committed),
                         "not committed: pace.2")


if __name__ == "__main__":
    unittest.main()
