"""scripts/run_experiments: what it reads in experiments, and what it calls different."""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
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

    def test_a_run_belongs_to_the_first_experiment_that_keeps_what_is_wanted(self):
        def cell(settings, groups=False, problems=False):
            evaluation = {"step": 0} | ({"problems": ["1"]} if problems else {})
            return json.dumps({"settings": settings, "evaluations": [evaluation]}
                              | ({"groups": {"step": [0]}} if groups else {}))

        shared = self.script.shared_cells({
            "plain": {("async", 1): cell("a"), ("async", 2): cell("b"), ("same", 1): cell("a")},
            "rich": {("all", 1): cell("a", groups=True), ("all", 2): cell("b", problems=True)},
            "again": {("x", 1): cell("a"), ("x", 2): cell("b", problems=True), ("x", 3): cell("c"),
                      ("y", 1): cell("a", groups=True)}})
        self.assertEqual(shared, {
            "plain": {}, "rich": {},
            "again": {("x", 1): ("plain", "async"), ("x", 2): ("rich", "all"),
                      ("y", 1): ("rich", "all")}})
        self.assertEqual(self.script.shared_table(shared).splitlines()[2:],
                         ["| `again` | `x` | 1 | `async` of `plain` |",
                          "| `again` | `x` | 2 | `all` of `rich` |",
                          "| `again` | `y` | 1 | `all` of `rich` |"])
        self.assertEqual(self.script.seeds_text([5, 1, 2, 3]), "1 to 3, 5")

    def test_shared_runs_are_the_same_line_but_for_names(self):
        committed = self.committed()
        results = source_tree.root() / "results" / "experiments"
        for name, cells in self.script.shared_cells(committed).items():
            for (arm, seed), (other, other_arm) in cells.items():
                both = committed[name][arm, seed], committed[other][other_arm, seed]
                kinds = {self.script.processor_of(results / folder) for folder in (name, other)}
                if len(kinds) > 1:
                    self.assertLess(self.script.distance(*both), self.script.TOLERANCE,
                                    f"{name}: {arm}.{seed}")
                    continue
                lines = [json.loads(line) for line in both]
                for line in lines:
                    line.pop("arm")
                if "groups" not in lines[0]:
                    lines[1].pop("groups", None)
                self.assertEqual(lines[0], lines[1], f"{name}: {arm}.{seed}")

    def test_the_page_says_which_runs_are_shared(self):
        page = (source_tree.root() / "experiments" / "README.md").read_text(encoding="utf-8")
        committed = self.committed()
        shared = self.script.shared_cells(committed)
        self.assertIn("\n" + self.script.shared_table(shared) + "\n", page)
        for name, text in self.texts().items():
            arms, (_, seeds) = self.script.arms_of(text), self.script.seeds_of(text)
            new = len(arms) * seeds - len(shared[name])
            self.assertIn(f"\n| `{name}` | {len(arms)} × {seeds} | {new} | ", page)
        minutes = re.findall(r"^\| `\w+` \| \d+ × \d+ \| \d+ \| (\d+) \|", page, re.MULTILINE)
        total = sum(map(int, minutes))
        self.assertIn(f"{total} minutes ({total / 60:.1f} hours) in all", page)

    @staticmethod
    def texts():
        return {path.stem: path.read_text(encoding="utf-8")
                for path in sorted((source_tree.root() / "experiments").glob("*.yaml"))}

    def committed(self):
        folder = source_tree.root() / "results" / "experiments"
        return {name: self.script.cells_of(folder / name / "cells.jsonl") for name in self.texts()}

    def test_an_experiment_takes_runs_from_the_folders_before_it(self):
        # A program that writes a line for each cell it was asked for, and says what it was given.
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            pace = folder / "pace"
            pace.write_text(
                "#!/bin/sh\nmkdir -p $4\necho \"$@\" >> " + str(folder / "calls") + "\n"
                "echo '{}' > $4/manifest.json\n"
                "echo '{\"arm\":\"x\",\"seed\":1}' > $4/cells.jsonl\necho '1 runs to make' >&2\n")
            pace.chmod(0o755)
            run = subprocess.run(
                [sys.executable, str(source_tree.root() / "scripts" / "run_experiments"), "curriculum",
                 "gamma", "--pace", str(pace), "--out", str(folder / "out")],
                capture_output=True, text=True, check=False)
            calls = (folder / "calls").read_text().splitlines()
            self.assertEqual(len(calls), 2, run.stderr)
            self.assertNotIn("--reuse", calls[0])
            self.assertIn(f"--reuse {folder / 'out' / 'curriculum'}", calls[1])

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
