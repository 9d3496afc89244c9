"""scripts/run_experiments: what it reads in experiments, and what it calls different."""

import importlib.machinery
import importlib.util
import json
import pathlib
import tempfile
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
        def cell(accuracy, norm, step=10):
            return json.dumps({"evaluations": [{"step": step, "accuracy": accuracy}],
                               "steps": {"train/grad_norm": [norm]}})

        committed = {("pace", 1): cell(0.5, 1.25), ("sync", 1): cell(0.5, 2)}
        for made, difference, sameness in (
                ({("pace", 1): cell(0.5, 1.25)}, None, "the same"),
                ({("pace", 1): cell(0.5, 1.26)}, None,
                 "1 with other digits, accuracies within 0.0000"),
                ({("pace", 1): cell(0.54, 1.25)}, None,
                 "1 with other digits, accuracies within 0.0400"),
                ({("pace", 1): cell(0.56, 1.25)}, "accuracies differ: pace.1", None),
                ({("pace", 1): cell(0.5, 1.25, 20)}, "accuracies differ: pace.1", None),
                ({("pace", 2): cell(0.5, 1.25)}, "not committed: pace.2", None)):
            self.assertEqual(self.script.difference(made, committed, False), difference)
            if difference is None:
                self.assertEqual(self.script.sameness(made, committed), sameness)
        # The same kind of processor gives the same bits.
        for made, difference in (({("pace", 1): cell(0.5, 1.25)}, None),
                                 ({("pace", 1): cell(0.5, 1.26)}, "differ: pace.1")):
            self.assertEqual(self.script.difference(made, committed, True), difference)
        made = {("pace", 1): cell(0.5, 1.25)}
        self.assertIsNone(self.script.difference(made, {}, False))
        self.assertEqual(self.script.sameness(made, {}), "nothing to compare with")

    def test_the_kind_of_processor_is_read(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertIsNone(self.script.processor_of(folder))
            (folder / "manifest.json").write_text(json.dumps({"machine": "AMD EPYC, 2 cores"}))
            self.assertEqual(self.script.processor_of(folder), "AMD EPYC")


if __name__ == "__main__":
    unittest.main()
